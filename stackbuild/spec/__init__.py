"""The spec: the YAML a person writes, as frozen models."""
