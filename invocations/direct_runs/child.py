"""Child process: what a process does that was started before anybody called.

It has loaded what a call needs, waits for one, makes it and ends: ``child.py FOLDER``. It runs from a copy of the harness, beside
which there is nothing: neither the hub's code nor its packages.
"""

from __future__ import annotations

import errno
import io
import signal
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 4  # bytes of the first field: after how many of them it ends, even if nobody is there any more to end it


def _stay_alone(event: str, _: tuple[Any, ...]) -> None:
    """A second process would leave the session and outlive the call."""
    if event in ("os.fork", "os.forkpty"):
        raise PermissionError(errno.EACCES, "A tool that runs directly is one process")


def main(place: str) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    from sandbox import unconfined_process  # noqa: PLC0415  found since the line before

    work = sys.stdin.buffer.read()
    if work:  # else whoever started it is gone
        signal.setitimer(signal.ITIMER_REAL, int.from_bytes(work[:SECONDS], "big"))
        sys.stdin = io.TextIOWrapper(io.BytesIO(work[SECONDS:]))
        sys.addaudithook(_stay_alone)
        unconfined_process.serve(place)


if __name__ == "__main__":
    main(sys.argv[1])
