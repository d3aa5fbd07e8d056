"""The gates that ship with the suite. Each is a function from options to measurements, both JSON."""
