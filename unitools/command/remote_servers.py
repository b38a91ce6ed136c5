"""Command ``unitools bring remote URL``: the manifests of tools of an MCP server that is somewhere else.

What it lists is read from here, with a credential of the author's, and pinned. Nothing hangs on it: a hub holds what the server lists
against the pin before it calls a tool.
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from unitools.brought_remotes import RemoteSource, check_address, check_argument_headers, derive_remote_group
from unitools.brought_tools import CannotBring
from unitools.command.brought_folder import BroughtFolder
from unitools.command.pack import read_file_bytes
from unitools.command.terminal import NO, CannotRun, format_shown
from unitools.mcp_conversation import RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_http import MODERN, HttpAnswer, HttpConversation, StatusRefused
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.publications import check_group
from unitools.service_credentials import BEARER, PLAIN, encode_credential, fits_header

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from unitools.mcp_http import Headers

ANSWER_WITHIN_S = 60
_PIECE_BYTES = 1 << 16
_OF_ACCESS = (401, 403)
_SECRET = re.compile(r"([A-Z][A-Z0-9_]{0,63})(?:=(?:(bearer|basic)|header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100})))?")


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("url", metavar="URL")
    command.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help="as the server calls it; again for more"
    )
    command.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME[=HOW]",
        help="a credential that the server asks for: bearer (usual), basic or header:X-Key; its value is read here from the "
        "environment variable of that name",
    )
    command.add_argument("--group", default="", metavar="group.package", help="what the tools stand under in a hub")
    command.add_argument("--listing", type=Path, metavar="FILE", help="what the server lists, instead of asking it")
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="instead of one named after the group")


def run(options: argparse.Namespace) -> int:
    try:
        check_address(options.url)
        group = check_group(options.group or derive_remote_group(options.url))
        folder = BroughtFolder.choose(group, options.output)
        brought = folder.read_brought()
        said = _read_credentials(options)
        kept: list[dict[str, str]] = next(
            (each["implementation"]["remote"].get("credentials", []) for each in brought), []
        )
        if options.listing:
            listing = Listing.from_bytes(read_file_bytes(options.listing))
        else:
            listing = list_tools(options.url, _read_values(kept if said is None else list(said)))
        check_argument_headers(listing, [*options.tool, *(each["origin"]["tool"] for each in brought)])
        return folder.bring(listing, RemoteSource(options.url, group, listing.protocol, said), options.tool, brought)
    except (CannotBring, ListingUnfit) as error:
        sys.stderr.write(f"{error}\n")
        return NO
    except ValueError as error:
        raise CannotRun(str(error)) from error


def _read_credentials(options: argparse.Namespace) -> tuple[dict[str, str], ...] | None:
    """None: nothing is said of them."""
    found = []
    for text in options.secret:
        asked = _SECRET.fullmatch(text)
        if asked is None:
            raise CannotRun(
                f"--secret is NAME, NAME=bearer, NAME=basic or NAME=header:X-Key, with NAME in capitals, not {text[:60]!r}. A value "
                "never stands here."
            )
        name, scheme, header = asked[1], asked[2] or BEARER, asked[3]
        if header:
            found.append({"secret": name, "in": "header", "name": header, "scheme": PLAIN})
        else:
            found.append({"secret": name, "in": "header", "name": "Authorization", "scheme": scheme})
    return tuple(found) or None


def _read_values(credentials: list[dict[str, str]]) -> Headers:
    found: Headers = []
    for each in credentials:
        value = os.environ.get(each["secret"], "")
        if not value:
            raise CannotRun(f"Set the environment variable {each['secret']} to the secret that the server asks for.")
        sent = encode_credential(each["scheme"], value)
        if not fits_header(sent):
            raise CannotRun(
                f"The environment variable {each['secret']} holds what no header can: a line break, or a space at an end."
            )
        found.append((each["name"], sent))
    return found


def list_tools(url: str, headers: Headers) -> Listing:
    """What the server lists: as since 2026-07-28, else after a handshake. :class:`CannotRun` with what it says instead."""
    server = _Server(url, headers)
    try:
        return _list(server, MODERN)
    except StatusRefused as refused:
        if refused.status in _OF_ACCESS:
            raise CannotRun(_denied(refused)) from refused
    except (RequestRefused, ServerUnfit, ServerEnded):
        pass  # perhaps it is an older one
    try:
        return _list(server, "")
    except StatusRefused as refused:
        if refused.status in _OF_ACCESS:
            raise CannotRun(_denied(refused)) from refused
        raise CannotRun(
            f"{refused} It speaks no MCP over HTTP there; servers of before 2025-03-26 are not spoken to."
        ) from refused
    except (RequestRefused, ServerUnfit, ServerEnded) as error:
        raise CannotRun(
            f"The server does not list its tools: {format_shown(str(error), 300) or 'it ended its answer.'}"
        ) from error


def _denied(refused: StatusRefused) -> str:
    return f"{refused} Name the secret that it asks for: --secret NAME."


def _list(server: _Server, revision: str) -> Listing:
    talk = HttpConversation(
        server.ask, revision=revision, log=_tell, note=_tell, progress=lambda _fraction, _message: None
    )
    try:
        talk.begin()
        return Listing.from_json({"protocol": talk.revision, "tools": talk.list_tools()})
    finally:
        talk.end()


class _Server:
    """A connection a request, to one address. No redirect is followed."""

    def __init__(self, url: str, headers: Headers) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 443, parts.path or "/"
        self._headers = headers
        self._context = ssl.create_default_context()

    def ask(self, method: str, headers: Headers, body: bytes) -> HttpAnswer:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=ANSWER_WITHIN_S, context=self._context)
        try:
            connection.request(method, self._path, body=body or None, headers=dict([*headers, *self._headers]))
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise CannotRun(f"{self._host} does not answer: {format_shown(str(error))}") from error
        said = {name.lower(): value for name, value in answer.getheaders()}
        return HttpAnswer(answer.status, said, _read(answer), connection.close)


def _read(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        until = time.monotonic() + ANSWER_WITHIN_S
        while piece := answer.read1(_PIECE_BYTES):
            if time.monotonic() > until:
                raise CannotRun(f"The server's answer took longer than {ANSWER_WITHIN_S} seconds.")
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise CannotRun(f"The server's answer was cut off: {format_shown(str(error))}") from error


def _tell(line: str) -> None:
    sys.stderr.write(f"  {format_shown(line)}\n")
