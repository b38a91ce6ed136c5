"""Command ``unitools bring remote URL``: the manifests of tools of an MCP server that is somewhere else.

What it lists is read from here, with a credential of the author's, and pinned. Nothing hangs on it: a hub holds what the server lists
against the pin before it calls a tool.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
from unitools.server_secrets import advise_secret
from unitools.service_credentials import BEARER, PLAIN, encode_credential, fits_header

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from unitools.mcp_http import Headers

ANSWER_WITHIN_S = 60
OWN_TOKEN = "MCP_ACCESS_TOKEN"  # noqa: S105  the name of an environment variable
_METADATA = "/.well-known/oauth-protected-resource"
_NOT_SIGNED_IN = 401
_PIECE_BYTES = 1 << 16
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
    command.add_argument(
        "--account",
        action="store_true",
        help="the server asks persons to sign in (OAuth): each connects their own account in the hub, and is asked for as themselves. "
        f"The list is read with an access token of yours from the environment variable {OWN_TOKEN}",
    )
    command.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help="with --account: what a person is asked for; again for more, otherwise what the server itself asks for",
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
        said, account = _read_credentials(options), _read_account(options)
        before: dict[str, Any] = next((each["implementation"]["remote"] for each in brought), {})
        asks_as_person = account is not None or (said is None and "account" in before)
        if options.listing:
            listing = Listing.from_bytes(read_file_bytes(options.listing))
        else:
            used = before.get("credentials", []) if said is None else list(said)
            listing = list_tools(options.url, _read_own_token() if asks_as_person else _read_values(used))
        check_argument_headers(listing, [*options.tool, *(each["origin"]["tool"] for each in brought)])
        source = RemoteSource(options.url, group, listing.protocol, said, account)
        return folder.bring(listing, source, options.tool, brought)
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
                "--secret is NAME, NAME=bearer, NAME=basic or NAME=header:X-Key, with NAME in capitals. A value "
                f"never stands here.{advise_secret(text)}"
            )
        name, scheme, header = asked[1], asked[2] or BEARER, asked[3]
        if header:
            found.append({"secret": name, "in": "header", "name": header, "scheme": PLAIN})
        else:
            found.append({"secret": name, "in": "header", "name": "Authorization", "scheme": scheme})
    return tuple(found) or None


def _read_account(options: argparse.Namespace) -> dict[str, Any] | None:
    """None: nothing is said of it."""
    if not options.account:
        if options.scope:
            raise CannotRun("--scope says what a person is asked for, so it goes with --account.")
        return None
    if options.secret:
        raise CannotRun(
            "A version asks its server as a person or with a secret of the tenant: --account or --secret, not both."
        )
    return {"scopes": list(dict.fromkeys(options.scope))} if options.scope else {}


def _read_own_token() -> Headers:
    """Nothing where there is none: some servers list their tools to everybody."""
    token = os.environ.get(OWN_TOKEN, "")
    if not token:
        return []
    sent = encode_credential(BEARER, token)
    if not fits_header(sent):
        raise CannotRun(f"The environment variable {OWN_TOKEN} holds what no header can.")
    return [("Authorization", sent)]


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
        if refused.is_denial:
            raise CannotRun(_denied(refused, server)) from refused
    except (RequestRefused, ServerUnfit, ServerEnded):
        pass  # perhaps it is an older one
    try:
        return _list(server, "")
    except StatusRefused as refused:
        if refused.is_denial:
            raise CannotRun(_denied(refused, server)) from refused
        raise CannotRun(f"{refused} {_explain_status(refused)}") from refused
    except (RequestRefused, ServerUnfit, ServerEnded) as error:
        raise CannotRun(
            f"The server does not list its tools: {format_shown(str(error), 300) or 'it ended its answer.'}"
        ) from error


def _explain_status(refused: StatusRefused) -> str:
    """As the page of a hub tells it (``registry.imports.remote_lists``)."""
    if refused.is_trouble:
        return "It has trouble of its own, or too much to do: try again later."
    if refused.is_elsewhere:
        return "It leads to another address, and nobody follows it there: give that one."
    return "It speaks no MCP over HTTP there; servers of before 2025-03-26 are not spoken to."


def _denied(refused: StatusRefused, server: _Server) -> str:
    if refused.status == _NOT_SIGNED_IN and server.asks_persons():
        return (
            f"{refused} It asks persons to sign in (OAuth). With --account each person connects their own account in the hub; set "
            f"the environment variable {OWN_TOKEN} to an access token of yours, by which the list is read once. For one account of "
            "the whole organisation name its secret instead: --secret NAME."
        )
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
        self._challenge = ""

    def ask(self, method: str, headers: Headers, body: bytes) -> HttpAnswer:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=ANSWER_WITHIN_S, context=self._context)
        try:
            connection.request(method, self._path, body=body or None, headers=dict([*headers, *self._headers]))
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise CannotRun(f"{self._host} does not answer: {format_shown(str(error))}") from error
        said = {name.lower(): value for name, value in answer.getheaders()}
        self._challenge = said.get("www-authenticate", "")
        return HttpAnswer(answer.status, said, _read(answer), connection.close)

    def asks_persons(self) -> bool:
        """Whether it says who gives tokens for it: in its refusal, or in a document beside it (RFC 9728)."""
        if "resource_metadata=" in self._challenge:
            return True
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=ANSWER_WITHIN_S, context=self._context)
        try:
            connection.request("GET", f"{_METADATA}{self._path.rstrip('/')}")
            answer = connection.getresponse()
            found = json.loads(answer.read(_PIECE_BYTES)) if answer.status == http.client.OK else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return False
        finally:
            connection.close()
        return isinstance(found, dict) and bool(found.get("authorization_servers"))


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
