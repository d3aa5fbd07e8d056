"""From a lock to an image: the two builders (DESIGN §3.1)."""
