"""Provider states: what a provider wants back of its answer, as a text that clients carry unread.

Formats have a place for reasoning that only its provider can read: redacted thinking, encrypted content. There the state of any
provider goes out with an answer, and comes back with the next request.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from kernel.problems import SchemaInvalid
from unitools.dialects.model_json import MAX_DEPTH, load_json
from unitools.strict_json import JsonRefused

MARK = "hub1."
MAX_BYTES = 4 * 1024 * 1024
FOREIGN = "This is no reasoning that this hub has passed on. Leave it out of the conversation."


def write_state(state: dict[str, Any]) -> str:
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return MARK + base64.urlsafe_b64encode(text.encode()).decode()


def read_state(text: str, pointer: str) -> dict[str, Any]:
    """The state in a text that :func:`write_state` made. Raises SchemaInvalid."""
    if not text.startswith(MARK):
        raise SchemaInvalid.at(pointer, FOREIGN)
    try:
        raw = base64.urlsafe_b64decode(text.removeprefix(MARK).encode("ascii"))
        state = load_json(raw.decode(), max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except (ValueError, JsonRefused):
        raise SchemaInvalid.at(pointer, FOREIGN) from None
    if not isinstance(state, dict) or set(state) != {"provider", "data"}:
        raise SchemaInvalid.at(pointer, FOREIGN)
    return state
