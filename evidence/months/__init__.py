"""Months: facts lie in one table for each month, so that an old one can leave as a whole."""
