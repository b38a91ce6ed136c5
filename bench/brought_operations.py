"""Brought operations: what bringing twenty operations of a real service takes, with FastMCP's reader beside ours.

Each document is read in a process of its own, so that the memory is that document's. The twenty are spread evenly over the document:
nobody's choice. FastMCP makes a tool of every operation; it has no other way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.figures import ROOT, CannotMeasure
from bench.service_documents import DOCUMENTS, fetch_documents
from scripts.provision import peers
from scripts.provision.console import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from bench.service_documents import ServiceDocument

MEASURED = ("GitHub", "Stripe", "Kubernetes")
CHOSEN = 20
PATIENCE_S = 45  # of FastMCP: longer than that nobody waits for a list
ALL_S = 600


@dataclass(frozen=True, slots=True)
class ReadingFigures:
    """Of one document: seconds and MiB for the chosen operations, bytes of their listing; for all of them how many give a manifest."""

    name: str
    operations: int
    seconds: float
    mib: float
    listing_bytes: int
    manifests: int
    rendered: int  # of these, those that every dialect takes
    refusals: dict[str, int]
    peer: str


def measure_operations() -> list[ReadingFigures]:
    with fetch_documents() as files:
        return [_measure(each, files[each.name]) for each in DOCUMENTS]


def _measure(document: ServiceDocument, path: Path) -> ReadingFigures:
    some = _run(sys.executable, "operations_probe", str(path), document.server, str(CHOSEN))
    whole = _run(sys.executable, "operations_probe", str(path), document.server, "0")
    peer = _ask_peer(path) if document.name in MEASURED else "–"
    return ReadingFigures(
        document.name,
        whole["operations"],
        some["seconds"],
        some["mib"],
        some["listing_bytes"],
        whole["manifests"],
        whole["rendered"],
        whole["refusals"],
        peer,
    )


def _run(python: str, module: str, *words: str, patience_s: int = ALL_S) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-m", f"bench.probes.{module}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience_s,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise CannotMeasure(f"{module} failed:\n{done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _ask_peer(path: Path) -> str:
    """In words: it may take longer than anybody waits."""
    try:
        python = str(peers.ensure_python("fastmcp-and-openai-agents"))
        found = _run(python, "fastmcp_operations_probe", str(path), patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"> {PATIENCE_S} s"
    except (CannotMeasure, SetupError) as error:
        return str(error).splitlines()[-1][:60]
    return f"{found['seconds']:.1f} s, {found['mib']:.0f} MiB, {found['listing_bytes'] / 1e6:.1f} MB"
