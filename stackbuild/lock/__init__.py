"""The lock: every input of a stack by version, digest, sha256 and size; its models, file and export."""
