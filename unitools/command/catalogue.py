"""Command ``unitools catalogue capabilities.json --as group.package``: a catalogue of the older tool service into a hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.command.push import add_hub_arguments, check_client, upload_publication
from unitools.command.terminal import GOOD, NO, CannotRun, print_lines, read_json
from unitools.command.universes import add_hub_findings, print_findings
from unitools.legacy_catalogue import CatalogueError, read_catalogue

if TYPE_CHECKING:
    import argparse


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("catalogue", type=Path, metavar="capabilities.json")
    command.add_argument(
        "--as", dest="group", required=True, metavar="GROUP.PACKAGE", help="the group and package of the tools"
    )
    command.add_argument("--version", default="1.0.0", metavar="1.0.0", help="for manifests that name none")
    command.add_argument(
        "--root", type=Path, metavar="FOLDER", help="where implementation_path begins; by default beside the catalogue"
    )
    add_hub_arguments(command)


def run(options: argparse.Namespace) -> int:
    """Without a hub: prints the manifests."""
    root = options.root or options.catalogue.parent
    try:
        made = add_hub_findings(
            read_catalogue(read_json(options.catalogue), root, group=options.group, version=options.version)
        )
    except (CatalogueError, ValueError, OSError) as error:
        raise CannotRun(f"{options.catalogue}: {error}") from error
    if options.hub:
        check_client()
        return upload_publication(made, options)
    print_findings(made)
    print_lines(json.dumps(made.manifests, indent=2, ensure_ascii=False))
    return NO if made.errors else GOOD
