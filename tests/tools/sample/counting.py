"""Tools whose effect takes place outside, in a store that says how often."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from unitools import runtime


def honours_its_key(store: str, seconds: float = 0, order: str = "") -> dict[str, Any]:
    """The store takes a key once, however often it is asked."""
    call = runtime.current_call()
    return _have_effect(store, key=call.idempotency_key, call=call.call_id, seconds=seconds, order=order)


def has_no_key(store: str, seconds: float = 0, order: str = "") -> dict[str, Any]:
    """Each run is one effect more."""
    return _have_effect(store, key=None, call=runtime.current_call().call_id, seconds=seconds, order=order)


def asks_a_person(store: str, seconds: float = 0, order: str = "") -> dict[str, Any]:
    """As the one above, and each call of it waits for somebody's word."""
    return _have_effect(store, key=None, call=runtime.current_call().call_id, seconds=seconds, order=order)


def reads(store: str, seconds: float = 0, order: str = "") -> dict[str, Any]:
    """Has no effect, and says that it was run."""
    return _have_effect(store, key="", call=runtime.current_call().call_id, seconds=seconds, order=order)


def one_at_a_time(store: str, seconds: float = 0, order: str = "") -> dict[str, Any]:
    """Says so in its manifest."""
    return _have_effect(store, key="", call=runtime.current_call().call_id, seconds=seconds, order=order)


def _have_effect(store: str, *, key: str | None, call: str, seconds: float, order: str = "") -> dict[str, Any]:
    """``order``: what the caller wants to have done, in its own words; it may be another call that does the same once more."""
    said = {"call": call, "key": key, "seconds": seconds, "order": order, "tool": runtime.current_call().tool_id}
    body = json.dumps(said).encode()
    with urllib.request.urlopen(f"{store}/effects", body) as answer:
        found: dict[str, Any] = json.load(answer)
    with urllib.request.urlopen(f"{store}/stay", body) as answer:  # the store sees for how long this run lives
        answer.read()
    return found
