"""Budgets: how much may be used, how much is, and what is refused when it is used up."""
