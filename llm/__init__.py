"""Model layer: what a model was asked, what it answered, and what that cost, alike for every provider. It runs no tool."""
