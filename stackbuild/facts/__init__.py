"""Sourced compatibility data: one row, one fact, with its source and confidence."""
