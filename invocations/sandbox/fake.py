"""Fake sandbox: how the hub can be tested without an engine.

A sandbox without walls that keeps the contract otherwise. Good for tests and for writing tools; never for code that is not
trusted.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from invocations.direct_runs.processes import ProcessSandbox, ToolProcess

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = "import sys; sys.path.insert(0, sys.argv[1]); from sandbox import unconfined_process; unconfined_process.serve(sys.argv[2])"


class FakeSandbox(ProcessSandbox):
    image = "fake"

    def take(self) -> ToolProcess:
        place = Path(tempfile.mkdtemp(prefix="toolhub-fake-"))
        return ToolProcess([sys.executable, "-I", "-B", "-c", _COMMAND, str(_ROOT), str(place)], place)

    def check(self) -> str:
        return "Fake sandbox: tools run as plain processes of this machine, WITHOUT walls"
