"""Every night, for each stack: are its inputs still there, does it rebuild to the same, is there something newer."""
