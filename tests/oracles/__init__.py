"""Other people's answers to questions that the hub answers itself."""
