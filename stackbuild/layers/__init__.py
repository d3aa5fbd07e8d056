"""Makers of layers: debs, wheels, byte-code, system, files; and the one tar writer."""
