"""Brokers: the transports that wake-ups travel by, Redis or the memory of one process."""
