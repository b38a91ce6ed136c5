"""One function for each way in which a tool can be run again."""

from __future__ import annotations

import contextlib
import random
import socket
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unitools import runtime


def draws(text: str = "") -> dict[str, Any]:
    """Rests on nothing but its arguments, the recorded clock and the recorded chance."""
    return {"text": text, "draw": random.randrange(10**9), "day": runtime.now().isoformat()}


def stamps(text: str = "") -> dict[str, Any]:
    """Says when it was asked by the machine's clock, which a replay has from the record; and an id that nothing records."""
    return {"text": text, "at": datetime.now(UTC).isoformat(), "id": str(uuid.uuid4())}


def counts(text: str = "") -> dict[str, Any]:
    """Says how long something took."""
    return {"text": text, "took": time.perf_counter_ns()}


def reaches(text: str = "") -> dict[str, Any]:
    """Tries everything that is outside, and says what it got."""
    got: dict[str, Any] = {"secret": None, "file": None, "network": None, "config": runtime.config()}
    with contextlib.suppress(LookupError):
        got["secret"] = runtime.secret("API_TOKEN")
    with contextlib.suppress(OSError):
        got["file"] = Path("/data/in/a.txt").read_text()
    try:
        socket.create_connection(("127.0.0.1", 3128), timeout=0.2).close()
        got["network"] = "open"
    except OSError:
        pass
    try:
        runtime.artifact("left.txt", f"left by {text}")
        Path("/data/in/left.txt").write_text("left")
    except (OSError, ValueError):
        pass
    return got


def needs_a_secret(text: str = "") -> dict[str, Any]:
    return {"length": len(runtime.secret("API_TOKEN"))}
