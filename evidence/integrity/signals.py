"""Integrity signals: what the layers above know of calls that the verifier must ask."""

from __future__ import annotations

from django.dispatch import Signal

which_are_open = Signal()  # tenant_id, invocation_ids: the receiver returns the set of those that have not ended
# tenant_id, ids of calls, chains and agent runs: the set of those whose person was erased, with all values
which_are_erased = Signal()
calls_without_end = Signal()  # tenant_id: it returns how many there are, and the oldest as state.OpenCall
