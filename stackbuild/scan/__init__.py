"""What an image holds, read from its layers without running it: files, packages, libraries, GPU code."""
