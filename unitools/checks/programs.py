"""Programs: whether what a manifest asks for fits a program, or another implementation whose box is used once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.checks.findings import declare_rule, declare_warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

OUTSIDE_SANDBOX = declare_rule(
    "implementation.outside_sandbox",
    "A program of an image runs in the sandbox.",
    "Set requires_sandbox to true, or leave it out.",
)
DEPENDENCIES = declare_rule(
    "implementation.dependencies_of_program",
    "Dependencies are packages for Python; a program has what its image and its package hold.",
    "Put what it needs into the package or the image, or name a Python module.",
)
WEAKER = declare_warning(
    "implementation.box_used_once",
    "Programs and browsers get a box that is used once, so they ask for no weaker isolation.",
    "Leave isolation out, or ask for single or cold.",
)


def check_program(manifest: Manifest) -> Iterator[ManifestFinding]:
    asked = manifest.document.get("isolation")
    if asked is not None and asked != manifest.isolation:
        what = "program" if manifest.program else "browser"
        yield WEAKER.at(("isolation",), f"The tool asks for {asked}; with a {what} it gets {manifest.isolation}.")
    if not manifest.program:
        return
    if manifest.document.get("requires_sandbox") is False:
        yield OUTSIDE_SANDBOX.at(("requires_sandbox",), "The tool is a program, but no sandbox is asked for.")
    if manifest.dependencies:
        yield DEPENDENCIES.at(("dependencies",), "The tool is a program and names packages for Python.")
