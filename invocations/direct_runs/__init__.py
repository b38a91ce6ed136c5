"""Direct runs: how a tool runs without a box, where an operator trusts it. SVC-11."""
