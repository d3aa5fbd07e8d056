"""Gates over what a scan found; rules about versions and architectures are those of ``compat``."""
