"""Remote lists: what an MCP server that is somewhere else lists, asked by the hub's own guarded way out.

The address was typed by a person, so it is asked as all such addresses are: public ones, or networks that the operator named, one
request at a time, without redirects. What was sent to it is not believed to stay there: an answer that says it back is not kept, nor
shown.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kernel.http.outbound import DEADLINE_S as REQUEST_DEADLINE_S
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from registry.imports.problems import SourceUnfit, SourceUnreachable
from registry.imports.turns import taking_turn
from registry.secrets.encodings import find_password, find_spelled, list_secret_forms, redact_forms
from unitools.brought_remotes import check_address
from unitools.brought_tools import CannotBring
from unitools.mcp_conversation import RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_http import MAX_ANSWER_BYTES, MODERN, HttpAnswer, HttpConversation, StatusRefused
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.service_credentials import BASIC, encode_credential, fits_header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from unitools.mcp_http import Headers

DEADLINE_S = 20.0  # of all requests for one list: a slow server holds a web process that long
_ANY_STATUS = range(100, 600)


def fetch_remote_list(
    url: str, credentials: Sequence[Mapping[str, str]], values: Mapping[str, str], tenant_id: UUID
) -> Listing:
    """What the server lists: as since 2026-07-28, else after a handshake. ``values``: by the names of secrets; those that are not
    known are not sent. A tenant has one list read at a time.
    """
    try:
        check_address(url)
    except CannotBring as error:
        raise SourceUnfit(str(error), details={"findings": [{"pointer": "/url", "message": str(error)}]}) from error
    hidden = {each["secret"]: values[each["secret"]] for each in credentials if values.get(each["secret"])}
    forms = _list_forms(credentials, hidden)
    headers = _build_headers(credentials, hidden)
    with taking_turn("remote-list", tenant_id, busy="Another server is being asked for its list."):
        listing = _ask(url, headers, lambda text: redact_forms(text, forms))
    if names := find_spelled([listing.protocol, listing.tools], forms):
        raise SourceUnfit(
            f"The list holds the value of {', '.join(names)}, which was sent to the server. Nothing of it was kept.",
            remedy="Replace the secret: whoever reads the list has it. Then tell those who run the server.",
        )
    return listing


def _list_forms(credentials: Sequence[Mapping[str, str]], values: Mapping[str, str]) -> dict[str, set[str]]:
    forms = {name: list_secret_forms(value) for name, value in values.items()}
    for each in credentials:
        if each["scheme"] == BASIC and (part := find_password(values.get(each["secret"], ""))):
            forms[each["secret"]] |= list_secret_forms(part)
    return forms


def _build_headers(credentials: Sequence[Mapping[str, str]], values: Mapping[str, str]) -> Headers:
    found: Headers = []
    for each in credentials:
        value = values.get(each["secret"], "")
        if not value:
            continue
        sent = encode_credential(each["scheme"], value)
        if not fits_header(sent):
            raise SourceUnreachable("The token holds what no header can: a line break, or a space at an end.")
        found.append((each["name"], sent))
    return found


def _ask(url: str, headers: Headers, redact: Callable[[str], str]) -> Listing:
    ends = time.monotonic() + DEADLINE_S
    try:
        try:
            return _list(url, headers, MODERN, redact, ends)
        except StatusRefused as refused:
            if refused.is_denial:
                raise
        except (RequestRefused, ServerUnfit, ServerEnded):
            pass  # perhaps it is an older one
        return _list(url, headers, "", redact, ends)
    except StatusRefused as refused:
        raise _explain_status(refused) from refused
    except (RequestRefused, ServerUnfit, ServerEnded) as error:
        why = (
            "".join(each if each.isprintable() else " " for each in redact(str(error)))[:300] or "it ended its answer."
        )
        raise SourceUnreachable(f"The server does not list its tools: {why}") from error
    except (AddressRefused, OutboundFailed) as error:
        raise SourceUnreachable(redact(str(error))) from error
    except ListingUnfit as error:
        raise SourceUnfit(redact(str(error))) from error


def _explain_status(refused: StatusRefused) -> SourceUnreachable:
    if refused.is_denial:
        return SourceUnreachable(
            f"The server answered {refused.status}.",
            remedy="Name the secret that it asks for, and type a token with which its list is read.",
        )
    if refused.is_trouble:
        return SourceUnreachable(
            f"The server answered {refused.status}.",
            remedy="It has trouble of its own, or too much to do: try again later.",
        )
    if refused.is_elsewhere:
        return SourceUnreachable(
            f"The server answered {refused.status}.",
            remedy="It leads to another address, and nobody follows it there: give that one.",
        )
    return SourceUnreachable(
        f"The server answered {refused.status}.",
        remedy="It speaks no MCP over HTTP there; servers of before 2025-03-26 are not spoken to.",
    )


def _list(url: str, headers: Headers, revision: str, redact: Callable[[str], str], ends: float) -> Listing:
    def ask(method: str, own: Headers, body: bytes) -> HttpAnswer:
        left = ends - time.monotonic()
        if left <= 0:
            raise OutboundFailed(f"The server did not list its tools within {DEADLINE_S:.0f} seconds.")
        answer = send_request(
            url,
            method=method,
            body=body or None,
            headers=dict([*own, *headers]),
            statuses=_ANY_STATUS,
            most_bytes=MAX_ANSWER_BYTES,
            within_s=min(REQUEST_DEADLINE_S, left),
        )
        # The one header that is quoted, and cut, in what is said of an answer.
        said = answer.headers | {"content-type": redact(answer.headers.get("content-type", ""))}
        return HttpAnswer(answer.status, said, iter([answer.body]), lambda: None)

    talk = HttpConversation(
        ask, revision=revision, log=_pass_over, note=_pass_over, progress=lambda _fraction, _message: None
    )
    try:
        talk.begin()
        return Listing.from_json({"protocol": talk.revision, "tools": talk.list_tools()})
    finally:
        talk.end()


def _pass_over(_line: str) -> None:
    """What a server says beside its answers is nobody's: only its list is asked for."""
