"""Probes: how what others have made is tried before anybody reviews it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.run.object_probe import probe_object
from invocations.run.package_lists import list_package
from invocations.run.server_probe import probe_server
from registry.dependencies import builder
from registry.imports.lister import ImportLister

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from registry.models import ToolVersion


def run_builder(stop: threading.Event) -> None:
    """The loop that resolves and builds, in a process that has a sandbox to try in."""
    builder.run_builder(stop, probe=probe_version, errand=ImportLister(list_package))


def probe_version(version: ToolVersion, folder: Path, beat: Callable[[], None]) -> None:
    """A server is started, an object made. Raises :class:`registry.dependencies.failures.CannotBuild`."""
    probe = probe_server if version.view.server is not None else probe_object
    probe(version, folder, beat)
