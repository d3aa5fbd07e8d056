"""What a finished image says of itself and is called: pin list, labels, tags."""
