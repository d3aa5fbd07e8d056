"""Wheels: indexes, the resolver behind one router, the choice of files, and fetching what is locked."""
