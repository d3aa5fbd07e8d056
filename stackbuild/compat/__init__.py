"""The compatibility judge: gates over spec, lock, image and host. Pure functions, no I/O."""
