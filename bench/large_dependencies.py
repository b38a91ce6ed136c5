"""Large dependencies: their cost when they are in memory before the call and when the call imports them.

The dependencies are really installed: wheels from the package index, into a folder made for the box's Python, compiled.
"""

from __future__ import annotations

import compileall
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure, MeasuredTimes
from bench.sandbox_harness import BenchTool, make_call, open_sandbox
from invocations.sandbox.base import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "pandas==2.2.3"
_INSTALL_S = 600
_BODY = """
    frame = pandas.DataFrame({"a": range(100), "b": [number % 7 for number in range(100)]})
    return {"sum": int(frame.groupby("b")["a"].sum().sum())}
"""
AHEAD = f"import pandas\ndef run():{_BODY}"
INSIDE = (
    f"import importlib\ndef run():\n    pandas = importlib.import_module('pan' + 'das'){_BODY}"  # nobody can see which
)
LIMITS = Limits(memory_bytes=512 * 1024 * 1024)


@contextmanager
def install_dependencies(package: str = PACKAGE) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toolhub-bench-wheels-") as folder:
        place = Path(folder, "bench-wheels")
        words = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            "--only-binary",
            ":all:",
            "--target",
            str(place),
        ]
        try:
            done = subprocess.run([*words, package], capture_output=True, text=True, timeout=_INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise CannotMeasure(f"{package} could not be installed within {_INSTALL_S} s.") from error
        if done.returncode:
            raise CannotMeasure(f"{package} could not be installed:\n{done.stderr.strip()[-1000:]}")
        compileall.compile_dir(place, quiet=2, workers=0)
        Path(folder).chmod(0o755)
        yield place


def measure_imports(rounds: int) -> tuple[MeasuredTimes, MeasuredTimes]:
    """(the call after its dependencies were imported ahead, the call that imports them itself), interleaved."""
    with install_dependencies() as place, open_sandbox() as where:
        ahead, inside = BenchTool.of(AHEAD, place), BenchTool.of(INSIDE, place)
        found: dict[str, list[float]] = {"ahead": [], "inside": []}
        for number in range(rounds + 1):
            for name, tool in (("ahead", ahead), ("inside", inside)):
                begun = time.perf_counter()
                make_call(where, tool, "shared", limits=LIMITS)
                if number:
                    found[name].append((time.perf_counter() - begun) * 1000)
    return MeasuredTimes("pandas, imported before the call", found["ahead"]), MeasuredTimes(
        "pandas, imported inside the call", found["inside"]
    )
