"""Rehearsal: what the process of each call runs is run beforehand, in the process that all of them are forked from.

Python rewrites a function that was run a few times into one that takes less, and remembers where it has found what was asked for. In
a process that lives for one call that is never of use, and each thing that is written is a page copied. Nothing here changes anything
outside this process, and no tool's own code is run.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

from sandbox import protocol
from sandbox.access_attempts import AccessAttempts
from sandbox.call import answer_call
from sandbox.ipc import WORD_BYTES, receive_message, receive_work, send_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.isolation import BoxIsolation

_TIMES = 20  # more than after which Python has rewritten a function, and what that calls
_MOMENT = "1970-01-01T00:00:00+00:00"
_HEAD: dict[str, Any] = {
    "module": "os",
    "entry": "getpid",
    "asks": {},
    "context": {"call_id": "rehearsal", "started_at": _MOMENT, "now": _MOMENT, "seed": "0f"},
    "stream": False,
    "replay": False,
    "inputs": [],
    "sent_files": [],
}
_SETTINGS = b'{"config": {"a": "b"}, "secrets": {"c": "d"}}'


def rehearse_calls(rooms: BoxIsolation) -> None:
    """With what nobody called, and nothing of a tenant's. ``rooms``: those of the calls, ready."""
    work = protocol.pack(_HEAD, b'{"text": "", "numbers": [1, 2.5]}', _SETTINGS)
    hints = AccessAttempts()
    for _ in range(_TIMES):
        head, (arguments, settings) = protocol.unpack(_pass_on(work))
        head["limits"] = rooms.limits
        answer_call(head, arguments, settings, hints, loaded=_nothing, progress=_nothing, find_entry=_find_entry)
        if rooms.ground is not None:
            rooms.ground.rehearse()


def _pass_on(work: bytes) -> bytes:
    one, other = socketpair(AF_UNIX, SOCK_SEQPACKET)
    send_message(one, protocol.WALLS_ARE_UP, (one.fileno(),))
    for descriptor in receive_message(other, WORD_BYTES)[2]:
        os.close(descriptor)
    one.send(b"=" + work)
    taken, _ = receive_work(other)
    one.close()
    other.close()
    return taken


def _find_entry(_: dict[str, Any]) -> Any:
    return _answer


def _answer(text: str, numbers: list[float]) -> dict[str, Any]:
    return {"text": text, "numbers": numbers}


def _nothing(*_: object) -> None:
    pass
