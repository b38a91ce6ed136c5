"""Unfinished calls: those that have begun and not ended, in a narrow table of their own."""
