"""What is taken out of single files while a layer is read: one file here for each kind of file."""
