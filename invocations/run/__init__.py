"""Run, the fourth stage of a call: what a worker does with it until the tool has ended."""
