"""Command ``unitools check FILE``: the tools of a file, what no dialect shows of them, and whether a hub would take them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from unitools.command.findings import check_rules_are_here, format_findings
from unitools.command.terminal import GOOD, NO, print_lines
from unitools.command.universes import (
    add_file_argument,
    add_name_arguments,
    build_checked_publication,
    load_given_universe,
)
from unitools.dialects import DRIVERS, DialectError, RenderOptions
from unitools.manifest_validation import PublicationFinding
from unitools.source_locations import locate_function

if TYPE_CHECKING:
    import argparse

    from unitools.universe import Universe


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_file_argument(command)
    add_name_arguments(command)
    command.add_argument("--manifests", action="store_true", help="print the manifests, as a hub would get them")
    command.add_argument("--local", action="store_true", help="do not check whether a hub would accept them")


def run(options: argparse.Namespace) -> int:
    if not options.local:
        check_rules_are_here()
    loaded = load_given_universe(options)
    universe = loaded.universe
    findings = [*_dialects(universe)]
    if not options.local:
        made = build_checked_publication(loaded, options)
        findings += made.findings
        if options.manifests:
            print_lines(json.dumps(made.manifests, indent=2, ensure_ascii=False))
            return NO if made.errors else GOOD
        ids = {name: id for id, name in made.names.items()}
    for tool in universe.tools:
        shown = f"{tool.name}  ({ids[tool.name]})" if not options.local else tool.name
        print_lines(f"{shown}: {tool.spec.description.partition(chr(10))[0]}"[:200])
        if hidden := ", ".join(f"{name} from {key}" for name, key in tool.injected_params.items()):
            print_lines(f"  injected, and shown to no model: {hidden}")
    for line in format_findings(findings, {tool.name: locate_function(tool.fn) for tool in universe.tools}):
        print_lines(line)
    wrong = [each for each in findings if each.severity == "error"]
    count = len(universe.tools)
    print_lines(f"{count} tool{'s' * (count != 1)}, {len(wrong)} error{'s' * (len(wrong) != 1)}.")
    return NO if wrong else GOOD


def _dialects(universe: Universe) -> list[PublicationFinding]:
    """What is lost on the way to a model; a tool that a dialect cannot show at all is an error for no hub."""
    found: dict[tuple[Any, ...], list[str]] = {}
    specs = [tool.spec for tool in universe.tools]
    for driver in DRIVERS:
        try:
            rendered = driver.render(specs, RenderOptions(on_unrenderable="skip"))
        except DialectError as error:
            found.setdefault(("", "", str(error)), []).append(driver.dialect)
            continue
        for each in rendered.diagnostics:
            if each.severity != "info":
                found.setdefault((each.tool, each.pointer, each.message), []).append(driver.dialect)
    return [
        PublicationFinding(tool, pointer, f"{', '.join(dialects)}: {message}", "warning")
        for (tool, pointer, message), dialects in found.items()
    ]
