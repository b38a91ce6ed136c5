"""Command: what an author can do on the command line.

``unitools --help`` says it. Each command is a module of this package with ``add_arguments(parser)`` and ``run(options) -> int``, named
as the command is or in :data:`MODULES`; only the one that is asked for is loaded, so that comparing two manifests needs the standard
library only.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from unitools.command.terminal import COULD_NOT_RUN, CannotRun, Parser

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {  # what each is for
    "check": "check the tools of a file: what models see, and whether a hub would accept them",
    "run": "call a tool of a file on this machine",
    "push": "send the tools of a file to a hub",
    "catalogue": "send the tools of a capabilities.json to a hub",
    "diff": "compare two manifests, and check the version number",
    "lock": "print a requirements file with hashes as a manifest's dependency_lock",
    "bring": "write the manifests of tools that others have made: an MCP server, operations of a service, tools of a framework",
    "pack": "pack a package and its manifests into one archive, and sign it",
    "verify": "verify that an archive is complete, and who signed it",
}

MODULES = {"bring": "brought_sources"}


def build_parser(wanted: str = "") -> Parser:
    """With the arguments of one command."""
    parser = Parser(prog="unitools", description="Write tools, and publish them in a hub.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, allow_abbrev=False)
        if name == wanted:
            module = importlib.import_module(f"unitools.command.{MODULES.get(name, name)}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    wanted = next((word for word in given if not word.startswith("-")), "")
    options = build_parser(wanted).parse_args(given)
    try:
        result: int = options.run(options)
        sys.stdout.flush()
    except CannotRun as problem:
        sys.stderr.write(f"{problem}\n")
        return COULD_NOT_RUN
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # so that nothing is said when Python ends, either
        return COULD_NOT_RUN
    return result
