"""End, the fifth stage of a call: what the run's outcome means, what is done to it, and the End."""
