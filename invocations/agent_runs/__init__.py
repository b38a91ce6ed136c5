"""Agent runs: a model asked again and again, with what the tools it proposed have answered, until it has nothing to propose."""
