"""Command ``unitools bring mcp PACKAGE``: the manifests of tools of an MCP server that a package of PyPI or npm brings.

What the server lists has to come from somewhere, and needs no hub: either the server is started here, in a folder of its own and after
the author has said so, or a file has it (``--listing``), taken in a container or kept from an earlier run. Nothing hangs on which: a
hub starts the server itself in a box before anybody reviews the tools, and refuses what lists otherwise.
"""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_npm import derive_npm_group, read_asked_package
from unitools.brought_tools import CannotBring, Source, derive_group
from unitools.checks.credentials import is_secret_variable
from unitools.command import npm_servers
from unitools.command.brought_folder import BroughtFolder
from unitools.command.pack import read_file_bytes
from unitools.command.started_servers import list_server_tools, read_reach, read_secrets
from unitools.command.terminal import NO, CannotRun, format_shown
from unitools.command.wheels import install_wheels
from unitools.dependency_locks import normalize_name
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.npm_locks import NpmLockUnfit
from unitools.npm_names import is_of_npm
from unitools.publications import check_group
from unitools.server_secrets import add_secrets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unitools.brought_tools import BroughtSource


_HINT = "Servers of an older mcp need --constraint 'mcp<2'; a program that is missing must be installed."
_PACKAGE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([A-Za-z0-9][A-Za-z0-9.!+_-]*))?")
_WARNING = """\
This starts code of {package} and of all that it needs on this machine, with your rights and with your network: code that nobody here
has reviewed. A hub starts it in a sandbox. To start it here all the same, say --run-here; to start nothing, name a listing that you
took elsewhere: --listing FILE --script NAME, with the version as {package}==VERSION.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("package", metavar="PACKAGE[==VERSION]|npm:NAME[@VERSION]")
    command.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help="as the server calls it; again for more"
    )
    command.add_argument("--constraint", action="append", default=[], metavar="NAME<2", help="for what comes along")
    command.add_argument(
        "--lock", type=Path, metavar="package-lock.json", help="of a package of npm; else npm here makes it"
    )
    command.add_argument("--script", default="", metavar="NAME", help="its program, where the package brings several")
    command.add_argument("--module", default="", metavar="NAME", help="a module to start instead of a program")
    command.add_argument(
        "--argument", action="append", default=[], metavar="TEXT", help="of the server, --argument=--x for a flag"
    )
    command.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="of the server")
    command.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="of its environment, which each tenant sets in the hub",
    )
    command.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="that the tools may reach by https"
    )
    command.add_argument(
        "--keep-files",
        nargs="?",
        const="tenant",
        default="",
        choices=["tenant", "agent", "person"],
        help="what calls leave in /data is there for the next ones, of the tenant or of each agent or person",
    )
    command.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="NAME",
        help="of the sandbox, that the server starts: git; its effect is at least Process",
    )
    command.add_argument(
        "--image", default="", metavar="NAME", help="of the sandbox, that has the programs; else the one named so"
    )
    command.add_argument(
        "--file-tree", action="append", default=[], metavar="/data/FOLDER", help="of the tenant, that the tools use"
    )
    command.add_argument("--browser", action="store_true", help="of the sandbox, for a server of npm that drives one")
    command.add_argument("--group", default="", metavar="group.package", help="what the tools stand under in a hub")
    command.add_argument("--listing", type=Path, metavar="FILE", help="what the server lists, instead of starting it")
    command.add_argument(
        "--run-here", action="store_true", help="start the server on this machine to see what it lists"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="instead of one named after the group")


def run(options: argparse.Namespace) -> int:
    is_npm = is_of_npm(options.package)
    try:
        package = read_asked_package(options.package)[0] if is_npm else _read_package(options)
        group = check_group(options.group or (derive_npm_group(package) if is_npm else derive_group(package)))
        folder = BroughtFolder.choose(group, options.output)
        brought = folder.read_brought()
        said = _read_start(options)
        start = _start_as(brought, said, read_secrets(options))
        find = npm_servers.look_at_package if is_npm else partial(_look_at_package, brought=brought)
        listing, source = find(options, group, start, said)
        return folder.bring(listing, source, options.tool, brought)
    except (CannotBring, ListingUnfit, NpmLockUnfit) as error:
        sys.stderr.write(f"{error}\n")
        return NO
    except ValueError as error:
        raise CannotRun(str(error)) from error


def _read_package(options: argparse.Namespace) -> str:
    asked = _PACKAGE.fullmatch(options.package)
    if asked is None:
        raise CannotRun(f"{options.package!r} is not PACKAGE or PACKAGE==VERSION.")
    if options.lock:
        raise CannotRun("--lock is for packages of npm; the lock of a package of PyPI is found by the hub.")
    return asked[1]


def _look_at_package(
    options: argparse.Namespace,
    group: str,
    start: dict[str, Any],
    said: dict[str, Any],
    *,
    brought: list[dict[str, Any]],
) -> tuple[Listing, BroughtSource]:
    """What the server of a package of PyPI lists, and where it comes from."""
    package, _, version = options.package.partition("==")
    constraints: list[str] = options.constraint or next(
        (each.get("dependency_constraints", []) for each in brought), []
    )
    listing, version, start = _look(options, package, version, start, constraints)
    source = Source(
        package,
        version,
        group,
        start,
        said=said,
        constraints=tuple(constraints) if options.constraint or not brought else None,
        reach=read_reach(options),
        secrets=read_secrets(options),
    )
    return listing, source


def _read_start(options: argparse.Namespace) -> dict[str, Any]:
    """What this run says of how the server is started, but for its secrets: those come to what each tool has."""
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


def _find_start(brought: list[dict[str, Any]]) -> dict[str, Any]:
    """How the server of a tool is started that was brought before."""
    return next((dict(each["implementation"]["server"]) for each in brought), {})


def _start_as(brought: list[dict[str, Any]], said: dict[str, Any], secrets: Sequence[dict[str, str]]) -> dict[str, Any]:
    """How the server is started here, and for a tool that is new: as one that was brought before has it, and this run says. What the
    configuration gives is of the manifest that has its schema.
    """
    kept = _find_start(brought)
    left_out = {"listing"} | ({"script", "module"} if "script" in said or "module" in said else set())
    start = {name: value for name, value in kept.items() if name not in left_out} | said
    had = [each for each in kept.get("environment", []) if "secret" in each]
    values = [each for each in start.get("environment", []) if "value" in each]
    start["environment"] = add_secrets(values, [*had, *secrets])
    return {name: value for name, value in start.items() if value}


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
        how = ["-m", start["module"]] if "module" in start else [str(site / "bin" / start["script"])]
        listing = list_server_tools(
            [sys.executable, *how],
            start,
            Path(place),
            keeps=bool(options.keep_files),
            hint=_HINT,
            PYTHONPATH=str(site),
        )
        return listing, found.version, start


def _is_named(found: Distribution, package: str) -> bool:
    return normalize_name(found.name or "") == normalize_name(package)


def _read_environment(text: str) -> dict[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise CannotRun(f"--environment is NAME=VALUE, not {text!r}. A secret is named alone: --secret NAME.")
    if is_secret_variable(name, value):
        raise CannotRun(
            f"--environment {name[:64]} looks like a secret, and its value would stand in the manifest for all to read. Say "
            "--secret NAME: each tenant keeps its own in the hub, and the server is started here with a text in its place. If it is "
            "none, make it a property of config_schema in the manifest, with the value as its default."
        )
    return {"name": name, "value": value}


def _only_script(found: Distribution, package: str) -> str:
    names = sorted(each.name for each in found.entry_points if each.group == "console_scripts")
    if len(names) == 1:
        return names[0]
    if package in names:
        return package
    many = f"brings several programs ({', '.join(map(format_shown, names))})" if names else "brings no program"
    raise CannotRun(f"{package} {many}: say which with --script NAME, or --module NAME.")
