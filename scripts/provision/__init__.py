"""How does a bare machine become one that runs and tests the hub? Standard library only: nothing is installed yet."""
