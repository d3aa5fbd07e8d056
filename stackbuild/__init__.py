"""stackbuild: a pinned, verified container image from a short YAML spec of a GPU machine-learning stack."""

__version__ = "0.1.0"
