"""How does a tool run without a box, where an operator trusts it? SVC-11."""
