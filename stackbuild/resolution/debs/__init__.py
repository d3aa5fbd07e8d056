"""Debs: apt's own answer in the base, what its sources and lists say, and fetching what is locked."""
