"""Notify: how PostgreSQL wakes the workers where there is no Redis, and while it does not answer.

Like a message of the broker a notification only says that there is something to do: who hears it takes what waits, and for what
nobody heard of any sweeper sends another. Both ends have a connection of their own, outside the pool: who listens must stay in one
session.
"""

CHANNEL = "toolhub_wake_up"
CALLS, REPLAYS = "calls", "replays"  # what waits
