"""Say what only the box may say, or in the name of another."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
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
    for fd in range(4, 1024):
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
