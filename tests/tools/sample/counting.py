"""Tools whose effect takes place outside, in a store that says how often."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from unitools import runtime


def honours_its_key(store: str, seconds: float = 0) -> dict[str, Any]:
    """The store takes a key once, however often it is asked."""
    call = runtime.current_call()
    return _have_effect(store, key=call.idempotency_key, call=call.call_id, seconds=seconds)


def has_no_key(store: str, seconds: float = 0) -> dict[str, Any]:
    """Each run is one effect more."""
    return _have_effect(store, key=None, call=runtime.current_call().call_id, seconds=seconds)


def reads(store: str, seconds: float = 0) -> dict[str, Any]:
    """Has no effect, and says that it was run."""
    return _have_effect(store, key="", call=runtime.current_call().call_id, seconds=seconds)


def one_at_a_time(store: str, seconds: float = 0) -> dict[str, Any]:
    """Says so in its manifest."""
    return _have_effect(store, key="", call=runtime.current_call().call_id, seconds=seconds)


def _have_effect(store: str, *, key: str | None, call: str, seconds: float) -> dict[str, Any]:
    body = json.dumps({"call": call, "key": key, "seconds": seconds, "tool": runtime.current_call().tool_id}).encode()
    with urllib.request.urlopen(f"{store}/effects", body) as answer:
        found: dict[str, Any] = json.load(answer)
    with urllib.request.urlopen(f"{store}/stay", body) as answer:  # the store sees for how long this run lives
        answer.read()
    return found
