"""From a lock to a Dockerfile and its context: the readable truth of a stack (DESIGN §3.1)."""
