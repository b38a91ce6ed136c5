"""aimock: a program of others that speaks as the providers of models do, and keeps a journal of what it was asked."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts.provision import peers
from scripts.provision.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Aimock:
    url: str

    def read_journal(self) -> list[dict[str, Any]]:
        """What was asked since it was last cleared, the oldest first."""
        with urllib.request.urlopen(f"{self.url}/__aimock/journal") as response:
            entries: list[dict[str, Any]] = json.load(response)
        return entries

    def clear_journal(self) -> None:
        request = urllib.request.Request(f"{self.url}/__aimock/reset/journal", method="POST")
        urllib.request.urlopen(request).close()


@contextmanager
def run_aimock(fixtures: Path) -> Iterator[Aimock]:
    """The program on a port of its own, until the context is left."""
    program = peers.ensure_node_modules("aimock") / "@copilotkit" / "aimock" / "dist" / "cli.js"
    port = free_port()
    words = [str(peers.find_node()), str(program), "--port", str(port), "--fixtures", str(fixtures), "--strict"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        mock = Aimock(f"http://127.0.0.1:{port}")
        _wait(mock)
        yield mock
    finally:
        process.terminate()
        process.wait()


def _wait(mock: Aimock) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            mock.read_journal()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
