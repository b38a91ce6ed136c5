"""Tools that reach for what is not theirs. Each says what it got, so that a test can see that it was nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from unitools import runtime

PLACES = ("/w", "/tmp", "/dev/shm", "/var/tmp", "/run", "/p")


def reads_file(path: str) -> dict[str, Any]:
    return {"text": Path(path).read_text()}


def reads_all_it_can(paths: list[str]) -> dict[str, Any]:
    """Hides that it was refused."""
    found = {}
    for path in paths:
        try:
            found[path] = Path(path).read_bytes().decode(errors="replace")
        except OSError:
            continue
    return {"found": found}


def connects(host: str, port: int) -> dict[str, Any]:
    with socket.create_connection((host, port), timeout=3) as connection:
        connection.sendall(b"the data of this call")
    return {"connected": True}


def shows_environment() -> dict[str, Any]:
    return {"environment": dict(os.environ)}


def runs_program(program: str) -> dict[str, Any]:
    return {"output": subprocess.run([program], capture_output=True, text=True, check=False).stdout}


def leaves_something(text: str) -> dict[str, Any]:
    """Writes wherever it may."""
    written = []
    for place in PLACES:
        try:
            Path(place, "left-by-a-call").write_text(text)
        except OSError:
            continue
        written.append(place)
    return {"written": written}


def looks_for_leftovers(words: list[str]) -> dict[str, Any]:
    """Looks for the words, joined, in every file and in the memory and environment of every process that it can see."""
    text, found = "-".join(words), []
    for place in PLACES:
        for folder, _, names in os.walk(place):
            found += [f"{folder}/{name}" for name in names if text in _read(f"{folder}/{name}")]
    processes = [name for name in _list("/proc") if name.isdigit()]
    for process in processes:
        if process != str(os.getpid()):
            files = [f"/proc/{process}/{name}" for name in ("environ", "cmdline", "mem")]
            found += [file for file in files if text in _read(file)]
    return {"found": found, "processes": processes}


def keeps_a_secret(text: str, seconds: float) -> dict[str, Any]:
    """Has ``text`` in its memory, its file and its name for a while."""
    Path("secret").write_text(text)
    print("kept", flush=True)
    time.sleep(seconds)
    return {"kept": len(text)}


def _list(place: str) -> list[str]:
    try:
        return [entry.name for entry in Path(place).iterdir()]
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(1_000_000).decode(errors="replace")
    except OSError:
        return ""


def hides_in_noise(text: str) -> dict[str, Any]:
    """Reaches for so many things with names so long that the list of them is larger than a fact may be."""
    for number in range(40):
        _read(f"/{number}" + "\N{PILE OF POO}" * 250)
    return reads_file("/etc/shadow")


def reaches_for_an_unspeakable_name(text: str) -> dict[str, Any]:
    """The name is not UTF-8."""
    with open(b"/etc/\xff\xfe", "rb") as file:  # noqa: PTH123
        return {"text": file.read().decode()}


def names_many_sources(number: int) -> dict[str, Any]:
    """Not hostile, only thorough."""
    for each in range(number):
        runtime.used_source("document", name=f"policies/{each:03}-" + "x" * 180, version="2026-11-01")
    return {"named": number}


def prints(megabytes: int) -> dict[str, Any]:
    for _ in range(megabytes):
        os.write(1, b"x" * 1_000_000)
    return {"printed": megabytes}


def kills_everybody() -> NoReturn:
    """Whoever can be reached, itself last."""
    for number in (*range(2, 500), 0):
        if number != os.getpid():
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)  # of no effect on the first process of a world of its own
    os._exit(9)


def fills_its_disk(megabytes: int) -> dict[str, Any]:
    with open("/w/large", "wb") as file:  # noqa: PTH123
        file.writelines(bytes(1_000_000) for _ in range(megabytes))
    return {"written": megabytes}
