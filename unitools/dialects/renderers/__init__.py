"""How is each dialect told of tools? One module per dialect."""
