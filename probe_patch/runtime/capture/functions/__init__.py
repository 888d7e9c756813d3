"""Functions and tensor methods of torch, seen wherever they were imported from and without replacing any of them."""
