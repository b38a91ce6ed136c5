"""The same bad calls, as a program for each library, run with the Python of its own environment (bench/sdk_peers.py)."""
