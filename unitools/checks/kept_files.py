"""Kept files: whether what a manifest says of the files that its calls keep fits the rest of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.checks.findings import declare_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

OF_NOBODY = declare_rule(
    "state.without_code",
    "Files are kept for code that runs in the sandbox: a function, a program or a server of a package.",
    "Leave state out, and requires_sandbox as it is by default.",
)
TWO_TREES = declare_rule(
    "state.beside_files",
    "Below /data is either what the tools keep, or the tenant's files that grants name.",
    "Leave state out, or capabilities.fs and limits.files.",
)
READS = declare_rule(
    "state.without_effect",
    "A tool without any effect leaves nothing for the next call.",
    "Set side_effect to Read or Write, or leave state out.",
)


def check_state(manifest: Manifest) -> Iterator[ManifestFinding]:
    if manifest.state is None:
        return
    if manifest.is_by_gate or manifest.document.get("requires_sandbox") is False:
        yield OF_NOBODY.at(("state",), "No code of the tool runs in the sandbox.")
    if manifest.capabilities.get("fs") or manifest.limit("files"):
        yield TWO_TREES.at(("state",), "The tool also asks for files of the tenant.")
    if manifest.side_effect == "None":
        yield READS.at(("side_effect",), "side_effect is None, and the tool keeps files.")
