"""The hub put together: settings, addresses, entry points. Whatever everyone shares is in :mod:`kernel`."""

import gc

# Loading the hub makes half a million objects that stay. Python's usual 700 has the garbage collector run through them 540 times, which
# was an eighth of the time of every start; and a request makes some thousands that go by themselves.
gc.set_threshold(50_000)
