"""The hub put together: settings, addresses, entry points. Whatever everyone shares is in :mod:`kernel`."""

import gc

# What a start makes is not garbage: to look for some in it takes a seventh of the start. Back on when the apps are ready.
gc.disable()
