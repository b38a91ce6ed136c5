"""Bell: how PostgreSQL wakes the workers where there is no Redis, and while it does not answer.

Like a message of the broker a ring only says that there is something to do: who hears it takes what waits, and what nobody heard is
rung again by a sweeper. Both ends have a connection of their own, outside the pool: who listens must stay in one session.
"""

CHANNEL = "toolhub_bell"
CALLS, REPLAYS = "calls", "replays"  # what waits
