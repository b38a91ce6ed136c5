"""Call signals: what others in the hub get to know of calls.

Receivers run inside the transaction of what they are told of: they write rows, quickly, and raise nothing.
"""

from __future__ import annotations

from django.dispatch import Signal

call_ended = Signal()  # invocation, ending: after the End fact
