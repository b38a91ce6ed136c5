"""Box search: what do tests find in a box, wherever a tool of it could look and where its engine writes?"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from invocations.sandbox.docker import DockerSandbox

FOLDERS = ("w", "data", "tmp", "run", "dev/shm", "var/tmp")  # that anything in a box can write to
MOST_BYTES = 64 << 20


def search_boxes(sandbox: DockerSandbox, texts: list[bytes]) -> tuple[int, list[str]]:
    """Memory, files, environment, command line, logs and settings of every box that is there, with the rights of who runs them: how
    many processes were looked at, and what was found where. Boxes keep no logs; whatever an engine had would be found."""
    looked, found = 0, []
    for box in [slot.box.id for slot in sandbox._pool.slots() if slot.box is not None]:
        logs = subprocess.run(["docker", "logs", box], capture_output=True, check=False)
        inside = subprocess.run(["docker", "inspect", box], capture_output=True, check=False).stdout
        parts = {"logs": logs.stdout + logs.stderr, "inspect": inside}
        top = subprocess.run(["docker", "top", box, "-eo", "pid"], capture_output=True, text=True, check=False).stdout
        for pid in top.split()[1:]:
            looked += 1
            parts |= _read_files(pid)
            parts |= {f"{pid} {name}": _read(Path(f"/proc/{pid}/{name}")) for name in ("environ", "cmdline")}
            parts[f"{pid} memory"] = _read_memory(pid)
        found += [f"{box} {name}" for name, raw in parts.items() for text in texts if text in raw]
    return looked, found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _read_memory(pid: str) -> bytes:
    found = bytearray()
    try:
        with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                if "w" not in rights:
                    continue
                begin, end = (int(each, 16) for each in span.split("-"))
                with suppress(OSError, ValueError, OverflowError):
                    memory.seek(begin)
                    found += memory.read(end - begin)
    except OSError:
        pass
    return bytes(found)


def _read_files(pid: str) -> dict[str, bytes]:
    """What lies where the process could have written, as it sees it itself."""
    found = {}
    for folder in FOLDERS:
        for parent, _, names in os.walk(Path("/proc", pid, "root", folder)):
            for path in (Path(parent, name) for name in names):
                if path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES:
                    found[f"{pid} {path}"] = _read(path)
    return found
