"""Readers of the files in which teams already keep their requirements: one file per format."""
