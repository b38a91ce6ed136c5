"""The BFCL corpus: which functions and calls does the Berkeley Function Calling Leaderboard hold?

Its data come from the wheel ``bfcl-eval`` (Apache-2.0), which is downloaded once, checked by its hash and read; it is never installed.
Where the wheel cannot be had, tests fail and say which command did not work.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unitools.calls import ToolSpec

VERSION = "2026.3.23"
SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
WHEEL = f"bfcl_eval-{VERSION}-py3-none-any.whl"
CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple")
FUNCTIONS, DOTTED, CALLS = 6113, 1403, 3058  # in these

# The corpus names types as Python, Java and JavaScript do.
TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": None,
}


@dataclass(frozen=True)
class Case:
    """A question's tools, and the calls that answer it: name and arguments, taken from the first of the accepted values."""

    id: str
    tools: tuple[ToolSpec, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...]


def wheel() -> Path:
    """The wheel in the cache; downloaded if it is not there or has changed."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolhub-tests"
    kept = folder / WHEEL
    if kept.is_file() and hashlib.sha256(kept.read_bytes()).hexdigest() == SHA256:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        lock = Path(fresh) / "bfcl.txt"
        lock.write_text(f"bfcl-eval=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--require-hashes",
            "-d",
            fresh,
            "-r",
            str(lock),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)} (bfcl-eval=={VERSION}) failed:\n{done.stdout}{done.stderr}"
        (Path(fresh) / WHEEL).replace(kept)
    return kept


@cache
def cases() -> tuple[Case, ...]:
    """All questions of the categories, in the corpus's order."""
    found = []
    with zipfile.ZipFile(wheel()) as archive:
        for category in CATEGORIES:
            path = f"BFCL_v4_{category}.json"
            answers = {each["id"]: each["ground_truth"] for each in _lines(archive, f"possible_answer/{path}")}
            for each in _lines(archive, path):
                tools = tuple(_tool(function) for function in each["function"])
                found.append(Case(each["id"], tools, tuple(_calls(answers[each["id"]]))))
    return tuple(found)


def functions() -> list[ToolSpec]:
    """All function docs, as often as the corpus holds them."""
    return [tool for case in cases() for tool in case.tools]


def _lines(archive: zipfile.ZipFile, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(f"bfcl_eval/data/{path}").splitlines() if line.strip()]


def _tool(function: dict[str, Any]) -> ToolSpec:
    return ToolSpec(function["name"], function["description"], _schema(function["parameters"]))


def _schema(held: dict[str, Any]) -> dict[str, Any]:
    """As JSON Schema: the types by its names, and no ``optional``, which it does not know."""
    schema = {key: value for key, value in held.items() if key not in ("type", "optional")}
    if said := TYPES.get(held.get("type", ""), held.get("type")):
        schema["type"] = said
    if "properties" in held:
        schema["properties"] = {name: _schema(each) for name, each in held["properties"].items()}
    if "items" in held:
        schema["items"] = _schema(held["items"])
    return schema


def _calls(truth: list[dict[str, dict[str, list[Any]]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, _picked(arguments)) for call in truth for name, arguments in call.items()]


def _picked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The first accepted value of each; an argument that may be left out stands as "". Deeper down some values stand by themselves."""
    picked = {}
    for name, accepted in arguments.items():
        values = [value for value in (accepted if isinstance(accepted, list) else [accepted]) if value != ""]
        if values:
            picked[name] = _value(values[0])
    return picked


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _picked(value)
    return [_value(each) for each in value] if isinstance(value, list) else value
