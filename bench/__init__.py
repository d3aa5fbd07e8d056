"""Benchmarks against peers; each prints a ratio and exits 1 when it misses its mark."""
