"""Playground: where people try models and tools, through an agent that is there for nothing else."""
