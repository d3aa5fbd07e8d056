"""The command line: one file per command; options in, one call, a report out (DESIGN §5)."""
