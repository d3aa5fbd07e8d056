"""The Docker Engine; the only package that talks to it (DESIGN §3.10)."""
