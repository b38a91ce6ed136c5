"""Queue, the third stage of a call: how a queued call comes to a worker, and what repairs a crash."""
