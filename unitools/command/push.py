"""``unitools push FILE --hub URL``: how do the tools of a file get into a hub, to be reviewed there?

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

from unitools.capsules import CapsuleError, pack
from unitools.command.answers import GOOD, NO, URL_VARIABLE, CannotRun, install, say
from unitools.command.findings import lines_of
from unitools.command.pack import signed, text_of
from unitools.command.universes import add_file, add_names, complain, loaded_from, publication_of
from unitools.locks import lines_of as lock_lines_of
from unitools.validating import Finding

if TYPE_CHECKING:
    import argparse

    from unitools.publications import Publication

KEY_VARIABLE = "TOOLHUB_API_KEY"
_ABOUT_THE_PACKAGE = frozenset(
    {400, 403, 409, 413, 422}
)  # any other refusal is about the request, or about the hub's day


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_file(command)
    add_names(command)
    add_hub(command)


def add_hub(command: argparse.ArgumentParser) -> None:
    command.add_argument("--hub", default=os.environ.get(URL_VARIABLE, ""), metavar="URL", help=f"else {URL_VARIABLE}")
    command.add_argument("--api-key-file", type=Path, metavar="FILE", help=f"else {KEY_VARIABLE} of the environment")
    command.add_argument("--lock", type=Path, metavar="requirements.txt", help="with hashes; else the hub resolves")
    command.add_argument("--readme", type=Path, metavar="FILE")
    command.add_argument("--key", type=Path, metavar="private.pem", help="an Ed25519 key that signs the package")


def run(options: argparse.Namespace) -> int:
    check_client()
    return upload(publication_of(loaded_from(options), options), options)


def check_client() -> None:
    if find_spec("httpx2") is None:
        raise CannotRun(f"A hub is reached with more packages: {install('hub')}")


def upload(made: Publication, options: argparse.Namespace) -> int:
    """Nothing is sent while something is wrong."""
    complain(made)
    if made.errors:
        return NO
    lock = lock_lines_of(text_of(options.lock)) if options.lock else ()
    readme = text_of(options.readme) if options.readme else ""
    try:
        capsule = pack(made.manifests, made.files, lock=lock, readme=readme)
    except (CapsuleError, ValueError) as error:
        raise CannotRun(f"This cannot be packed: {error}") from error
    headers = {"Content-Type": "application/zip"}
    if options.key:
        headers["Capsule-Signature"] = base64.b64encode(signed(capsule, options.key)).decode()
    answer = _sent(capsule.data, headers, made, options)
    if answer is None:
        return NO
    say(f"{answer['id']}  {answer['digest']}")
    for each in answer["versions"]:
        say(f"  {each['tool']} {each['version']}: {each['review_state']}")
    say("Somebody else reviews them now, in the hub's console.")
    return GOOD


def _sent(
    data: bytes, headers: dict[str, str], made: Publication, options: argparse.Namespace
) -> dict[str, Any] | None:
    """What the hub says; None where it says no to the package, which is an answer."""
    from unitools.hub.clients import HubClient  # noqa: PLC0415  httpx2 is an extra
    from unitools.hub.errors import HubError, Refused  # noqa: PLC0415
    from unitools.hub.steps import Send  # noqa: PLC0415

    if not options.hub:
        raise CannotRun(f"Which hub? Say --hub URL, or set {URL_VARIABLE}.")
    try:
        with HubClient(options.hub, api_key(options.api_key_file)) as hub:
            answer: dict[str, Any] = hub.send(Send("POST", "/api/v1/capsules", data, headers, safe=True))["data"]
    except Refused as problem:
        said = "\n".join([str(problem), *_told(problem.details, made)])
        if problem.status not in _ABOUT_THE_PACKAGE:
            raise CannotRun(said) from problem
        sys.stderr.write(f"{said}\n")
        return None
    except (HubError, ValueError) as error:
        raise CannotRun(str(error)) from error
    return answer


def _told(details: dict[str, Any], made: Publication) -> list[str]:
    tool = made.names.get(str(details.get("tool", "")), "")
    listed = details.get("findings") or details.get("errors") or []
    found = [
        Finding(tool, str(each.get("pointer", "")), str(each.get("message", "")), str(each.get("severity", "error")))
        for each in listed
        if isinstance(each, dict)
    ]
    return [f"  {line}" for line in lines_of(found, made.places)]


def api_key(file: Path | None) -> str:
    key = text_of(file) if file else os.environ.get(KEY_VARIABLE, "")
    if not key.strip():
        raise CannotRun(f"An API key is needed: set {KEY_VARIABLE}, or name a file with --api-key-file.")
    return key.strip()
