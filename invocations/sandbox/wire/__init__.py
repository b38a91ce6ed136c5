"""Wire: how a worker and a sandbox host talk."""
