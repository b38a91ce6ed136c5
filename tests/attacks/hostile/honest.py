"""No attack: what the calls between the attacks do in the soak. Each knows a canary of its own, and must see no other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from unitools import runtime

from .poisoning import find_a_secret


def answers(canary: str, number: int) -> Any:
    print(canary)
    return [canary, number * 2 + 1, runtime.secret("CANARY") == canary, os.listdir("/w")]


def writes(canary: str, number: int) -> Any:
    Path("/w", canary).write_text(canary * 100)
    print(canary, file=sys.stderr)
    return [
        Path("/w", canary).read_text()[: len(canary)],
        number * 2 + 1,
        True,
        [name for name in os.listdir("/w") if name != canary],
    ]


def searches(canary: str, number: int) -> Any:
    """All of its memory, for what another call knew."""
    return [canary, number * 2 + 1, True, find_a_secret()]
