"""Say what only the box may say, or in the name of another."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import time
from contextlib import suppress
from typing import NoReturn

from sandbox import protocol


def _report(kind: int, value: object, **about: object) -> bytes:
    text = json.dumps(value).encode()
    rest = json.dumps({"report": {}, "attempts": [], "error": {"type": "", "message": ""}} | about).encode()
    return struct.pack("!BII", kind, len(text), len(rest)) + text + rest


def _frame(kind: int, body: bytes) -> bytes:
    return struct.pack("!2sBBII", b"TB", protocol.VERSION, kind, 1, len(body)) + bytes(16) + body


def result_on_stdout() -> list[str]:
    head = json.dumps({"ended": "exited", "started": True, "parts": []}).encode()
    os.write(1, _frame(4, struct.pack("!I", len(head)) + head))
    print(json.dumps({"status": "ok", "value": ["forged"]}))
    return []


def frames_on_every_descriptor() -> list[str]:
    for fd in range(5, 1024):
        try:
            os.write(fd, _frame(4, b"forged"))
        except OSError:
            continue
        return [f"descriptor {fd}"]
    return []


def the_supervisors_channel() -> list[str]:
    got = []
    for path in ("/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/fd/2", "/dev/stdout", "/proc/self/fd/100"):
        try:
            with open(path, "wb", buffering=0) as file:
                file.write(_frame(4, b"forged"))
        except OSError:
            continue
        if path != "/dev/stdout":
            got.append(path)
    return got


def report_then_hang() -> NoReturn:
    os.write(3, _report(1, ["forged"]))
    time.sleep(60)
    raise SystemExit


def garbage_then_hang() -> NoReturn:
    os.write(3, os.urandom(500))
    time.sleep(60)
    raise SystemExit


def two_reports() -> list[str]:
    os.write(3, _report(1, ["forged"]))
    return ["forged"]


def report_that_promises_more() -> NoReturn:
    os.write(3, struct.pack("!BII", 1, 0xFFFFFFFF, 0xFFFFFFFF) + b"x")
    os._exit(0)


def report_of_an_unknown_kind() -> NoReturn:
    os.write(3, _report(200, ["forged"]))
    os._exit(0)


def report_that_nothing_ran() -> NoReturn:
    os.write(3, _report(9, [], error={"type": "", "message": "start_failed", "blocked": "", "code": "", "details": {}}))
    os._exit(0)


def report_with_a_foreign_shape() -> NoReturn:
    os.write(3, _report(1, [], report={"sources": "all", "status": "ok", "clean": True}))
    os._exit(0)


def error_code_of_the_platform() -> NoReturn:
    error = {"type": "x", "message": "y", "code": "POLICY.DENIED; DROP", "details": {}}
    os.write(3, _report(2, "", error=error))
    os._exit(0)


def sockets_of_the_hub() -> list[str]:
    got = []
    for path in ("/run/hub.sock", "/var/run/docker.sock", "\0hub", "\0toolhub"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
            except OSError:
                continue
            got.append(path)
    return got


def progress_that_is_garbage() -> list[str]:
    """On the pipe of progress, whatever a reader of lines could take for something else."""
    for text in (
        b"\xff\xfe\n", b"[]\n", b"null\n", b'{"done": NaN}\n', b'{"__class__": 1}\n', b"[" * 5000 + b"\n", b"\0\n",
        b'{"stream": "result"}\n', b'{"a":' * 200 + b"\n", b"9" * 5000 + b"\n", b"{" + b"x" * 70_000 + b"}\n",
        _frame(4, b"forged"), b"no end",
    ):  # fmt: skip
        with suppress(OSError):
            os.write(4, text)
    return []


def every_kind_of_frame() -> list[str]:
    """Each with a number and a signature that somebody may have guessed, where the supervisor reads."""
    for fd in (1, 2, 4):
        for kind in range(12):
            for sequence in range(4):
                header = struct.pack("!2sBBII", b"TB", protocol.VERSION, kind, sequence, 2)
                with suppress(OSError):
                    os.write(
                        fd, header + hashlib.blake2s(header + b"{}", key=bytes(32), digest_size=16).digest() + b"{}"
                    )
    return []


def the_channels_socket() -> list[str]:
    """Be the box, or be the hub, at the place where the two have met."""
    got = []
    for path in ("/c/s", "/c/egress", "/run/toolhub", "/c/../c/s"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
                client.sendall(_frame(2, b"{}"))
            except OSError:
                continue
            got.append(path)
    for path in ("/c/s", "/c/t", "/c/egress"):
        with suppress(OSError):
            os.unlink(path)
            got.append(f"removed {path}")
        with socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.bind(path)
            got.append(f"listens at {path}")
    with suppress(OSError):
        got += os.listdir("/c")
    return got


def walls_that_never_rose() -> list[str]:
    """What the box says of itself, said once more by the tool: that it is up, that it is ready, which process it is."""
    for fd in range(3, 16):
        with suppress(OSError), socket.socket(fileno=os.dup(fd)) as end:
            socket.send_fds(end, [protocol.WALLS_ARE_UP], [0])
            return [f"descriptor {fd} is a socket"]
    return []


def a_report_in_pieces() -> list[str]:
    """The header now, the rest when everybody has stopped waiting."""
    report = _report(1, ["forged"])
    os.write(3, report[:3])
    time.sleep(60)
    return []


def another_call_than_its_own() -> list[str]:
    """The envelope of the call is the hub's word: changing the copy changes nothing that counts."""
    from unitools import runtime

    with suppress(Exception):
        object.__setattr__(runtime.current_call(), "call_id", "inv_forged")
    return []
