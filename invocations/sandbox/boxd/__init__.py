"""Boxd: the daemon that alone holds the engine of a sandbox host."""
