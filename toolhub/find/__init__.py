"""Find: one box for anything that somebody may see, by a part of a name or by a pasted id."""
