"""Remote lists: what an MCP server that is somewhere else lists, asked by the hub's own guarded way out.

The address was typed by a person, so it is asked as all such addresses are: public ones, or networks that the operator named, one
request at a time, without redirects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from registry.imports.problems import SourceUnfit, SourceUnreachable
from unitools.brought_remotes import check_address
from unitools.brought_tools import CannotBring
from unitools.mcp_conversation import RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_http import MAX_ANSWER_BYTES, MODERN, HttpAnswer, HttpConversation, StatusRefused
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.service_credentials import encode_credential, fits_header

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unitools.mcp_http import Headers

_OF_ACCESS = (401, 403)
_ANY_STATUS = range(100, 600)


def build_headers(credentials: Sequence[Mapping[str, str]], values: Mapping[str, str]) -> Headers:
    """``values``: by the names of secrets; those that are not known are not sent."""
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


def fetch_remote_list(url: str, headers: Headers) -> Listing:
    """What the server lists: as since 2026-07-28, else after a handshake."""
    try:
        check_address(url)
    except CannotBring as error:
        raise SourceUnfit(str(error), details={"findings": [{"pointer": "/url", "message": str(error)}]}) from error
    try:
        try:
            return _list(url, headers, MODERN)
        except StatusRefused as refused:
            if refused.status in _OF_ACCESS:
                raise
        except (RequestRefused, ServerUnfit, ServerEnded):
            pass  # perhaps it is an older one
        return _list(url, headers, "")
    except StatusRefused as refused:
        raise _explain_status(refused) from refused
    except (RequestRefused, ServerUnfit, ServerEnded) as error:
        why = "".join(each if each.isprintable() else " " for each in str(error))[:300] or "it ended its answer."
        raise SourceUnreachable(f"The server does not list its tools: {why}") from error
    except (AddressRefused, OutboundFailed) as error:
        raise SourceUnreachable(str(error)) from error
    except ListingUnfit as error:
        raise SourceUnfit(str(error)) from error


def _explain_status(refused: StatusRefused) -> SourceUnreachable:
    if refused.status in _OF_ACCESS:
        return SourceUnreachable(
            f"The server answered {refused.status}.",
            remedy="Name the secret that it asks for, and type a token with which its list is read.",
        )
    return SourceUnreachable(
        f"The server answered {refused.status}.",
        remedy="It speaks no MCP over HTTP there; servers of before 2025-03-26 are not spoken to.",
    )


def _list(url: str, headers: Headers, revision: str) -> Listing:
    def ask(method: str, own: Headers, body: bytes) -> HttpAnswer:
        answer = send_request(
            url,
            method=method,
            body=body or None,
            headers=dict([*own, *headers]),
            statuses=_ANY_STATUS,
            most_bytes=MAX_ANSWER_BYTES,
        )
        return HttpAnswer(answer.status, answer.headers, iter([answer.body]), lambda: None)

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
