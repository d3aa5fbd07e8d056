"""Bases: images of a registry, and those made from debs; and the engine's copy of either."""
