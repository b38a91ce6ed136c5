"""Search: facts found by what they say, in an index made from the log."""
