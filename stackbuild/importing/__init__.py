"""Importing an image that others built: from its scan to the draft of a spec. Knows no Docker."""
