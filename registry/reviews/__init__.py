"""Reviews: who decides about a submitted version, and what a decision takes."""
