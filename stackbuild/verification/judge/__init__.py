"""Judging: pure functions from a promise and a run of the suite to findings."""
