"""Model prices: what a tenant says that its models cost, and in which currency its budgets are."""
