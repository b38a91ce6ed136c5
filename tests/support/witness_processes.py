"""Witnesses as processes of their own, as another operator runs them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class WitnessProcess:
    """``vkey``: by which others know it. ``setting``: what TOOLHUB_WITNESSES says of it."""

    vkey: str
    url: str

    @property
    def setting(self) -> str:
        return f"{self.vkey}@{self.url}"


@contextmanager
def witness_process(folder: Path, *logs: str, name: str = "w.example", port: int = 0) -> Iterator[WitnessProcess]:
    """Ended as by a power cut. Its folder is what stays of it."""
    command = [sys.executable, "-m", "evidence.witnesses", "--name", name, "--dir", str(folder)]
    command += ["--bind", f"127.0.0.1:{port}", *(part for log in logs for part in ("--log", log))]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    try:
        assert process.stdout is not None
        vkey, said = process.stdout.readline().strip(), process.stdout.readline().strip()
        yield WitnessProcess(vkey, said.rpartition(" at ")[2])
    finally:
        process.kill()
        process.communicate()
