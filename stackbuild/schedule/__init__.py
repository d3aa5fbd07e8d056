"""The jobs of a CI service: which stacks to build, on which GPUs to judge them, and what promotes them."""
