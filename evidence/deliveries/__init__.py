"""Deliveries: how messages leave the hub for somebody else's server, signed, each at least once, and nobody's behind another's.

Used for the events that sinks get (:mod:`evidence.sinks`), for what people are told (``access.notifications``) and for what agents
are (``invocations.callbacks``). Each of them keeps its own rows and says what is due and what is sent; the rest is here.
"""
