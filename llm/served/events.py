"""Events: server-sent events that have a name."""

from __future__ import annotations

import json
from typing import Any


def write_event(kind: str, **fields: Any) -> str:
    """One event whose data says its kind as well."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n"
