"""Child process: how a look does something that could end or change its own process."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_FAILED = 77


def ask_child(function: Callable[[], Any]) -> Any:
    """What the function returns in a child of its own, as JSON; None when the child did not get that far."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(function, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


def _answer(function: Callable[[], Any], writing: int) -> NoReturn:
    try:
        os.write(writing, json.dumps(function()).encode())
    finally:
        os._exit(_FAILED)


def fork_child(function: Callable[[], object]) -> int:
    """Run the function in a child that nobody hears from; its number. ``OSError`` when there can be no further child."""
    pid = os.fork()
    if pid:
        return pid
    try:
        function()
        os._exit(0)
    finally:
        os._exit(_FAILED)


def end_children(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
