"""Brought folder: where the drafts of the tools of one server lie, beside what the server listed.

A folder ``group_package`` with ``listing.json`` and ``manifests/``, which is packed as it is. A second run keeps what a person wrote.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_tools import draft_tools
from unitools.command.pack import read_file_bytes, write_file
from unitools.command.terminal import GOOD, NO, CannotRun, format_shown, print_changes, print_lines, read_json
from unitools.mcp_listings import LISTING_FILE, Listing
from unitools.publications import derive_package_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.brought_tools import BroughtSource, Draft


@dataclass(frozen=True, slots=True)
class BroughtFolder:
    path: Path

    @classmethod
    def choose(cls, group: str, output: Path | None) -> BroughtFolder:
        """``output`` or one named after the group; its name is the package's."""
        name = derive_package_name(group)
        path = output or Path(name)
        if path.name != name:
            raise CannotRun(f"The folder of the group {group} is called {name}; choose another --output.")
        return cls(path)

    def read_brought(self) -> list[dict[str, Any]]:
        """The manifests of an earlier run."""
        found = [read_json(path) for path in sorted((self.path / "manifests").glob("*.json"))]
        return [each for each in found if "origin" in each]

    def read_listing(self) -> Listing | None:
        """What the server listed when it was brought before."""
        path = self.path / LISTING_FILE
        return Listing.from_bytes(read_file_bytes(path)) if path.is_file() else None

    def bring(
        self, listing: Listing, source: BroughtSource, names: Sequence[str], brought: list[dict[str, Any]]
    ) -> int:
        """Write drafts of these tools and of those that were brought before; without any, say which there are.

        Raises:
            CannotBring: one of them cannot be brought.
        """
        before = [str(each["origin"]["tool"]) for each in brought]
        if not before and not names:
            return _offer(listing, source.name)
        gone = [name for name in before if name not in listing.tools and name not in names]
        chosen = [name for name in dict.fromkeys([*before, *names]) if name not in gone]
        drafts = draft_tools(listing, source, chosen, brought, self.read_listing())
        self._write(listing, drafts)
        self._report(drafts, gone)
        return NO if gone else GOOD

    def _write(self, listing: Listing, drafts: list[Draft]) -> None:
        try:
            (self.path / "manifests").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"{self.path} cannot be made: {error.strerror}.") from error
        write_file(self.path / LISTING_FILE, listing.to_bytes())
        for draft in drafts:
            text = json.dumps(draft.document, indent=2, ensure_ascii=False)
            write_file(self.path / "manifests" / f"{draft.document['id']}.json", f"{text}\n".encode())

    def _report(self, drafts: list[Draft], gone: list[str]) -> None:
        for draft in drafts:
            document = draft.document
            print_lines(
                f"{document['id']} {document['version']}  {document['side_effect']}, from {format_shown(document['origin']['tool'])}"
            )
            print_changes(draft.changes)
        for name in gone:
            sys.stderr.write(f"The server has no tool {format_shown(name)} any more; its manifest is left as it is.\n")
        print_lines(f"Read and correct them (effect, hosts, limits), then: unitools pack {self.path}")


def _offer(listing: Listing, name: str) -> int:
    print_lines(f"{name} has {len(listing.tools)} tools; choose with --tool NAME, again for more:")
    for tool in sorted(listing.tools):
        said = str(listing.tools[tool].get("description") or "").strip().partition("\n")[0]
        print_lines(f"  {format_shown(tool)}  {format_shown(said)}")
    return GOOD
