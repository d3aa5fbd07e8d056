"""What a code, or a pasted error, means and what to do."""
