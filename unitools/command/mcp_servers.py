"""Command ``unitools bring mcp PACKAGE``: the manifests of tools of an MCP server that a package of PyPI brings.

What the server lists has to come from somewhere, and needs no hub: either the server is started here, in a folder of its own and after
the author has said so, or a file has it (``--listing``), taken in a container or kept from an earlier run. Nothing hangs on which: a
hub starts the server itself in a box before anybody reviews the tools, and refuses what lists otherwise.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_tools import CannotBring, Source, derive_group, draft_tools
from unitools.command.pack import read_file_bytes, write_file
from unitools.command.terminal import GOOD, NO, CannotRun, format_shown, print_changes, print_lines, read_json
from unitools.command.wheels import install_wheels
from unitools.dependency_locks import normalize_name
from unitools.mcp_conversation import McpConversation, RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_listings import LISTING_FILE, Listing, ListingUnfit
from unitools.publications import check_group, derive_package_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from unitools.brought_tools import Draft

LIST_WITHIN_S = 60
_PACKAGE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([A-Za-z0-9][A-Za-z0-9.!+_-]*))?")
_WARNING = """\
This starts code of {package} and of all that it needs on this machine, with your rights and with your network: code that nobody here
has reviewed. A hub starts it in a sandbox. To start it here all the same, say --run-here; to start nothing, name a listing that you
took elsewhere: --listing FILE --script NAME, with the version as {package}==VERSION.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("package", metavar="PACKAGE[==VERSION]")
    command.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help="as the server calls it; again for more"
    )
    command.add_argument("--constraint", action="append", default=[], metavar="NAME<2", help="for what comes along")
    command.add_argument("--script", default="", metavar="NAME", help="its program, where the package brings several")
    command.add_argument("--module", default="", metavar="NAME", help="a module to start instead of a program")
    command.add_argument(
        "--argument", action="append", default=[], metavar="TEXT", help="of the server, --argument=--x for a flag"
    )
    command.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="of the server")
    command.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="that the tools may reach by https"
    )
    command.add_argument("--group", default="", metavar="group.package", help="what the tools stand under in a hub")
    command.add_argument("--listing", type=Path, metavar="FILE", help="what the server lists, instead of starting it")
    command.add_argument(
        "--run-here", action="store_true", help="start the server on this machine to see what it lists"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="instead of one named after the group")


def run(options: argparse.Namespace) -> int:
    asked = _PACKAGE.fullmatch(options.package)
    if asked is None:
        raise CannotRun(f"{options.package!r} is not PACKAGE or PACKAGE==VERSION.")
    try:
        group = check_group(options.group or derive_group(asked[1]))
        folder: Path = options.output or Path(derive_package_name(group))
        if folder.name != derive_package_name(group):
            raise CannotRun(
                f"The folder of the group {group} is called {derive_package_name(group)}; choose another --output."
            )
        existing = [read_json(path) for path in sorted((folder / "manifests").glob("*.json"))]
        brought = [each for each in existing if "origin" in each]
        said = _read_start(options)
        start = _start_as(brought, said)
        constraints: list[str] = options.constraint or next(
            (each.get("dependency_constraints", []) for each in brought), []
        )
        listing, version, start = _look(options, asked[1], asked[2] or "", start, constraints)
        source = Source(
            asked[1],
            version,
            group,
            start,
            said=said,
            constraints=tuple(constraints) if options.constraint or not brought else None,
            hosts=tuple(options.host),
        )
        before = [str(each["origin"]["tool"]) for each in brought]
        if not before and not options.tool:
            return _offer(listing, options.package)
        gone = [name for name in before if name not in listing.tools and name not in options.tool]
        chosen = [name for name in dict.fromkeys([*before, *options.tool]) if name not in gone]
        drafts = draft_tools(listing, source, chosen, brought, _read_earlier(folder))
    except (CannotBring, ListingUnfit) as error:
        sys.stderr.write(f"{error}\n")
        return NO
    except ValueError as error:
        raise CannotRun(str(error)) from error
    _write(folder, listing, drafts)
    _report(folder, drafts, gone)
    return NO if gone else GOOD


def _offer(listing: Listing, package: str) -> int:
    print_lines(f"{package} has {len(listing.tools)} tools; choose with --tool NAME, again for more:")
    for name in sorted(listing.tools):
        said = str(listing.tools[name].get("description") or "").strip().partition("\n")[0]
        print_lines(f"  {format_shown(name)}  {format_shown(said)}")
    return GOOD


def _read_start(options: argparse.Namespace) -> dict[str, Any]:
    """What this run says of how the server is started."""
    if options.script and options.module:
        raise CannotRun("A server is started as --script or as --module, not as both.")
    said: dict[str, Any] = {}
    if options.script or options.module:
        said |= {"script": options.script} if options.script else {"module": options.module}
    if options.argument:
        said["arguments"] = options.argument
    if options.environment:
        said["environment"] = [_read_environment(each) for each in options.environment]
    return said


def _start_as(brought: list[dict[str, Any]], said: dict[str, Any]) -> dict[str, Any]:
    """How the server is started here, and for a tool that is new: as one that was brought before has it, and this run says. Values
    of a secret or of the configuration are of the manifest that names them.
    """
    kept: dict[str, Any] = next((each["implementation"]["server"] for each in brought), {})
    left_out = {"listing"} | ({"script", "module"} if "script" in said or "module" in said else set())
    start = {name: value for name, value in kept.items() if name not in left_out}
    if "environment" in start:
        start["environment"] = [each for each in start["environment"] if "value" in each]
    return {name: value for name, value in (start | said).items() if value}


def _read_earlier(folder: Path) -> Listing | None:
    """What the server listed when it was brought before."""
    path = folder / LISTING_FILE
    return Listing.from_bytes(read_file_bytes(path)) if path.is_file() else None


def _look(
    options: argparse.Namespace, package: str, version: str, start: dict[str, Any], constraints: list[str]
) -> tuple[Listing, str, dict[str, Any]]:
    """What the server lists, which version it is, and how it is started."""
    is_known = "script" in start or "module" in start
    if options.listing:
        if not version or not is_known:
            raise CannotRun(
                "With --listing say PACKAGE==VERSION and how it is started: --script NAME or --module NAME."
            )
        return Listing.from_bytes(read_file_bytes(options.listing)), version, start
    if not options.run_here:
        raise CannotRun(_WARNING.format(package=package))
    sys.stderr.write(f"Starting {package} on this machine, outside any sandbox.\n")
    with tempfile.TemporaryDirectory(prefix="unitools-bring-") as place:
        site = Path(place, "site")
        install_wheels([options.package], constraints, site)
        found = next(each for each in distributions(path=[str(site)]) if _is_named(each, package))
        start = start if is_known else {"script": _only_script(found, package)} | start
        return _list_tools(site, Path(place), start), found.version, start


def _is_named(found: Distribution, package: str) -> bool:
    return normalize_name(found.name or "") == normalize_name(package)


def _read_environment(text: str) -> dict[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise CannotRun(f"--environment is NAME=VALUE, not {text!r}. Secrets are named in the manifest, not here.")
    return {"name": name, "value": value}


def _only_script(found: Distribution, package: str) -> str:
    names = sorted(each.name for each in found.entry_points if each.group == "console_scripts")
    if len(names) == 1:
        return names[0]
    if package in names:
        return package
    many = f"brings several programs ({', '.join(map(format_shown, names))})" if names else "brings no program"
    raise CannotRun(f"{package} {many}: say which with --script NAME, or --module NAME.")


def _list_tools(site: Path, place: Path, start: dict[str, Any]) -> Listing:
    how = ["-m", start["module"]] if "module" in start else [str(site / "bin" / start["script"])]
    home = place / "home"
    home.mkdir()
    # The zone of a sandbox: servers name that of their machine in what they list.
    environment = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(site), "TZ": "UTC"}
    environment |= {each["name"]: each["value"] for each in start.get("environment", ()) if "value" in each}
    command = [sys.executable, *how, *start.get("arguments", ())]
    with (place / "stderr").open("w+b") as said, _server(command, environment, home, said) as talk:
        try:
            begun = talk.initialize()
            return Listing.from_json({"protocol": begun["protocolVersion"], "tools": talk.list_tools()})
        except (ServerEnded, ServerUnfit, RequestRefused) as error:
            said.seek(0)
            tail = said.read()[-2048:].decode(errors="replace").splitlines()
            why = str(error) or f"it ended before it had answered, or was silent for {LIST_WITHIN_S} seconds"
            hint = "Servers of an older mcp need --constraint 'mcp<2'; a program that is missing must be installed."
            raise CannotRun(
                "\n".join([f"The server does not list its tools: {why}", *map(format_shown, tail), hint])
            ) from error


@contextmanager
def _server(command: list[str], environment: dict[str, str], home: Path, said: Any) -> Iterator[McpConversation]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=said, env=environment, cwd=home, start_new_session=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield McpConversation(
                server.stdout.fileno(),
                server.stdin.fileno(),
                log=_tell,
                note=_tell,
                progress=lambda _fraction, _message: None,
                deadline=time.monotonic() + LIST_WITHIN_S,
            )
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # what it has started as well


def _write(folder: Path, listing: Listing, drafts: list[Draft]) -> None:
    try:
        (folder / "manifests").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRun(f"{folder} cannot be made: {error.strerror}.") from error
    write_file(folder / LISTING_FILE, listing.to_bytes())
    for draft in drafts:
        text = json.dumps(draft.document, indent=2, ensure_ascii=False)
        write_file(folder / "manifests" / f"{draft.document['id']}.json", f"{text}\n".encode())


def _report(folder: Path, drafts: list[Draft], gone: list[str]) -> None:
    for draft in drafts:
        document = draft.document
        print_lines(
            f"{document['id']} {document['version']}  {document['side_effect']}, from {format_shown(document['origin']['tool'])}"
        )
        print_changes(draft.changes)
    for name in gone:
        sys.stderr.write(f"The server has no tool {format_shown(name)} any more; its manifest is left as it is.\n")
    print_lines(f"Read and correct them (effect, hosts, limits), then: unitools pack {folder}")


def _tell(line: str) -> None:
    sys.stderr.write(f"  {format_shown(line)}\n")
