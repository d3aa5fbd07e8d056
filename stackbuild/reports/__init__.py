"""Reports: one file per format over one model, all pure functions from a report to text."""
