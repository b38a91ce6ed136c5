"""Models that an agent may call, listed as other people's programs ask for them."""
