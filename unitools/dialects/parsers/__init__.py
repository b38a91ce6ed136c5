"""How are a model's calls taken out of what a provider answered, and the results said in its dialect? One module per dialect."""
