"""Command ``unitools run FILE TOOL JSON``: what a tool answers, called here and now as a model would call it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import anyio

from unitools import runtime
from unitools.command.terminal import GOOD, NO, CannotRun, print_lines
from unitools.command.universes import add_file_argument, load_given_universe

if TYPE_CHECKING:
    import argparse


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_file_argument(command)
    command.add_argument("tool", metavar="TOOL")
    command.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="an object; - reads it from the standard input"
    )
    command.add_argument("--context", default="{}", metavar="JSON", help="the values to inject, by their keys")


def run(options: argparse.Namespace) -> int:
    universe = load_given_universe(options).universe
    if options.tool not in universe.tools:
        raise CannotRun(f"There is no tool {options.tool}. There are {', '.join(universe.tools.names) or 'none'}.")
    text = sys.stdin.read() if options.arguments == "-" else options.arguments
    arguments, context = _object(text, "The arguments"), _object(options.context, "The context")

    async def call() -> Any:
        return await universe.call(options.tool, arguments, context)

    with runtime.running(runtime.Call(tool_id=options.tool)):
        result = anyio.run(call)
    if result.is_error:
        sys.stderr.write(f"{result.status}: {result.to_content()}\n")
        return NO
    print_lines(json.dumps(result.value, ensure_ascii=False, indent=2))
    return GOOD


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CannotRun(f"{what} are no JSON: {error}.") from error
    if not isinstance(found, dict):
        raise CannotRun(f"{what} have to be a JSON object.")
    return found
