"""What an image's files amount to: packages, Python environments, libraries, and what should not be there."""
