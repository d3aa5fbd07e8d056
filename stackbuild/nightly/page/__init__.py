"""The page of nights: the state of every stack, its trends and its changes, as HTML that needs nothing else."""
