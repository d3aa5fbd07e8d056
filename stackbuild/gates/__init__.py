"""What each gate code means: one table per area, read by ``explain``, the reports and the documentation."""
