"""The host: what it is and what it qualifies for."""
