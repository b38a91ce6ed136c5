"""Command ``unitools push FILE --hub URL``: how the tools of a file get into a hub, to be reviewed there.

They travel as one capsule: manifests, source and lock. The API key comes from ``TOOLHUB_API_KEY`` or from a file, never from the
command line, where every user of the machine could read it.
"""

from __future__ import annotations

import base64
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.capsules import CapsuleError, pack_capsule
from unitools.command.findings import format_findings
from unitools.command.pack import read_file_text, sign_with_key
from unitools.command.terminal import GOOD, NO, URL_VARIABLE, CannotRun, format_install_hint, print_lines
from unitools.command.universes import (
    add_file_argument,
    add_name_arguments,
    build_checked_publication,
    load_given_universe,
    print_findings,
)
from unitools.dependency_locks import read_lock_lines as lock_lines_of
from unitools.manifest_validation import PublicationFinding

if TYPE_CHECKING:
    import argparse

    from unitools.publications import Publication

KEY_VARIABLE = "TOOLHUB_API_KEY"
_ABOUT_THE_PACKAGE = frozenset(
    {400, 403, 409, 413, 422}
)  # any other refusal is about the request, or about the hub's day


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_file_argument(command)
    add_name_arguments(command)
    add_hub_arguments(command)


def add_hub_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--hub", default=os.environ.get(URL_VARIABLE, ""), metavar="URL", help=f"else {URL_VARIABLE}")
    command.add_argument("--api-key-file", type=Path, metavar="FILE", help=f"else {KEY_VARIABLE} of the environment")
    command.add_argument("--lock", type=Path, metavar="requirements.txt", help="with hashes; else the hub resolves")
    command.add_argument("--readme", type=Path, metavar="FILE")
    command.add_argument("--key", type=Path, metavar="private.pem", help="an Ed25519 key that signs the package")


def run(options: argparse.Namespace) -> int:
    check_client()
    return upload_publication(build_checked_publication(load_given_universe(options), options), options)


def check_client() -> None:
    if find_spec("httpx2") is None:
        raise CannotRun(f"A hub is reached with more packages: {format_install_hint('hub')}")


def upload_publication(made: Publication, options: argparse.Namespace) -> int:
    """Nothing is sent while something is wrong."""
    print_findings(made)
    if made.errors:
        return NO
    lock = lock_lines_of(read_file_text(options.lock)) if options.lock else ()
    readme = read_file_text(options.readme) if options.readme else ""
    try:
        capsule = pack_capsule(made.manifests, made.files, lock=lock, readme=readme)
    except (CapsuleError, ValueError) as error:
        raise CannotRun(f"This cannot be packed: {error}") from error
    headers = {"Content-Type": "application/zip"}
    if options.key:
        headers["Capsule-Signature"] = base64.b64encode(sign_with_key(capsule, options.key)).decode()
    answer = _sent(capsule.data, headers, made, options)
    if answer is None:
        return NO
    print_lines(f"{answer['id']}  {answer['digest']}")
    for each in answer["versions"]:
        print_lines(f"  {each['tool']} {each['version']}: {each['review_state']}")
    print_lines("Somebody else reviews them now, in the hub's console.")
    return GOOD


def _sent(
    data: bytes, headers: dict[str, str], made: Publication, options: argparse.Namespace
) -> dict[str, Any] | None:
    """What the hub says; None where it says no to the package, which is an answer."""
    from unitools.hub.clients import HubClient  # noqa: PLC0415  httpx2 is an extra
    from unitools.hub.errors import HubError, Refused  # noqa: PLC0415
    from unitools.hub.protocol import HubRequest  # noqa: PLC0415

    if not options.hub:
        raise CannotRun(f"Which hub? Say --hub URL, or set {URL_VARIABLE}.")
    try:
        with HubClient(options.hub, read_api_key(options.api_key_file)) as hub:
            answer: dict[str, Any] = hub.send(HubRequest("POST", "/api/v1/capsules", data, headers, safe=True))["data"]
    except Refused as problem:
        said = "\n".join([str(problem), *_describe_details(problem.details, made)])
        if problem.status not in _ABOUT_THE_PACKAGE:
            raise CannotRun(said) from problem
        sys.stderr.write(f"{said}\n")
        return None
    except (HubError, ValueError) as error:
        raise CannotRun(str(error)) from error
    return answer


def _describe_details(details: dict[str, Any], made: Publication) -> list[str]:
    tool = made.names.get(str(details.get("tool", "")), "")
    listed = details.get("findings") or details.get("errors") or []
    found = [
        PublicationFinding(
            tool, str(each.get("pointer", "")), str(each.get("message", "")), str(each.get("severity", "error"))
        )
        for each in listed
        if isinstance(each, dict)
    ]
    return [f"  {line}" for line in format_findings(found, made.places)]


def read_api_key(file: Path | None) -> str:
    key = read_file_text(file) if file else os.environ.get(KEY_VARIABLE, "")
    if not key.strip():
        raise CannotRun(f"An API key is needed: set {KEY_VARIABLE}, or name a file with --api-key-file.")
    return key.strip()
