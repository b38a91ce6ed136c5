"""What does the hub want of Redis as a broker?

A bell and nothing else (docs/adr/0004): who hears it looks into the database, and what nobody heard is rung again within
seconds. So workers keep no books in Redis about the messages that they have, and give none back when they end. With kombu's
books, a worker that lost Redis for a moment while a call ran ended with all its calls: what it acknowledges or gives back goes
through the connection that is gone (kombu 5.7.0: ``'NoneType' object has no attribute 'hostname'``).
"""

from __future__ import annotations

from kombu.transport import redis


class Channel(redis.Channel):
    ack_emulation = False
    do_restore = False


class Transport(redis.Transport):
    Channel = Channel
