"""Command: what an author can do on the command line.

``unitools --help`` says it. Each command is a module of this package with ``add_arguments(parser)`` and ``run(options) -> int``; only
the one that is asked for is loaded, so that comparing two manifests needs the standard library only.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from unitools.command.terminal import COULD_NOT_RUN, CannotRun, Parser

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {  # each is the name of a module, and what it is for
    "check": "which tools does a file hold, and would models and hubs take them?",
    "run": "call a tool of a file, here and now",
    "push": "bring the tools of a file to a hub",
    "catalogue": "bring the tools of a capabilities.json to a hub",
    "diff": "what changed between two manifests, and is the version number right?",
    "lock": "a requirements file with hashes, as a manifest's dependency_lock",
    "pack": "a package and its manifests as one archive, signed with a key",
    "verify": "is an archive whole, and who signed it?",
}


def build_parser(wanted: str = "") -> Parser:
    """With the arguments of one command."""
    parser = Parser(prog="unitools", description="Write tools, and bring them to a hub.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, allow_abbrev=False)
        if name == wanted:
            module = importlib.import_module(f"unitools.command.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    wanted = next((word for word in given if not word.startswith("-")), "")
    options = build_parser(wanted).parse_args(given)
    try:
        result: int = options.run(options)
    except CannotRun as problem:
        sys.stderr.write(f"{problem}\n")
        return COULD_NOT_RUN
    return result
