"""From a lock to what describes the image: the Dockerfile with its context, and the configuration (DESIGN §3.1)."""
