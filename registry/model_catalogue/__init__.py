"""Model catalogue: which models an agent finds, and what it is told of each."""
