"""How does an author write a tool, and how do a hub and a model see it? Nothing in here imports Django."""
