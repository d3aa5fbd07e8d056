"""What differs between two images, locks or SBOMs: in pins, packages and files (DESIGN §2, drift)."""
