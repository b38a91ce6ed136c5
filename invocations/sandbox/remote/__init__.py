"""Remote: the worker's side of sandbox hosts."""
