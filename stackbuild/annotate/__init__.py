"""What an image stands for, and says of itself: pin list, labels, tags, annotations (DESIGN §2, pin list)."""
