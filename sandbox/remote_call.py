"""Remote call: how a server of others that is somewhere else answers one call.

Nothing of an author runs here. What is said with the server goes to the gate, which lets through what belongs to this one tool, adds
the credentials and speaks TLS. Where the hub asks for it, what the server lists is held against what was reviewed first: a tool that
is another one by now is not called.
"""

from __future__ import annotations

import time
from contextlib import suppress
from urllib.parse import urlsplit

from sandbox.access_attempts import PACKAGE
from sandbox.gate_requests import CutOff, ask_gate
from sandbox.mcp_results import ask_tool, read_result
from unitools import runtime
from unitools.mcp_conversation import PROGRESS_TOKEN, RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_http import HttpAnswer, HttpConversation, StatusRefused
from unitools.mcp_listings import LISTING_FILE, Listing, ListingUnfit, list_entry_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sandbox.gate_requests import GateAnswer
    from unitools.mcp_http import Headers

HTTPS_PORT = 443
_END_S = 1.0  # for a server to end its answer by itself, after it has said the result
_HUNG_UP = "The server hung up before its answer was whole."


class ListingDrifted(runtime.DomainError):
    """The tool that was reviewed is not there any more, or is another one."""

    code = "TOOL_DRIFTED"


class RemoteServer:
    """``remote``: the manifest's ``implementation.remote``, with the ``revision`` that is spoken."""

    def __init__(self, remote: dict[str, Any]) -> None:
        url = urlsplit(remote["url"])
        self._authority = f"{url.hostname}:{url.port or HTTPS_PORT}"
        self._path = url.path or "/"
        self._revision = remote["revision"]
        self._listing = f"{PACKAGE}/{remote['listing']}/{LISTING_FILE}"

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        asks = head["asks"]
        return lambda **arguments: self.call(asks, arguments)

    def call(self, asks: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """``asks``: the ``tool`` by its own name, whether its result is ``structured``, and the digests of its ``entry`` and the whole
        ``listing`` where they are to be held against what the server lists now."""
        ways = {"log": _log, "note": runtime.warn, "progress": runtime.progress}
        talk = HttpConversation(self._ask, revision=self._revision, **ways)
        params = {"name": asks["tool"], "arguments": arguments, "_meta": {"progressToken": PROGRESS_TOKEN}}
        try:
            talk.begin()
            if "entry" in asks:
                self._check_listing(talk, asks)
            result = ask_tool(talk, params)
            return read_result(result, structured=asks["structured"])
        except StatusRefused as refused:
            raise runtime.UpstreamError(str(refused), status=refused.status) from None
        except RequestRefused as refused:  # of what comes before the call
            raise runtime.UpstreamError(refused.message[:2000]) from None
        except (ServerUnfit, ListingUnfit) as error:
            raise runtime.UpstreamError(str(error), unusable=True) from None
        except ServerEnded:
            raise runtime.UpstreamError("The server ended its answer without a result.", unusable=True) from None
        except CutOff:
            raise runtime.UpstreamError(_HUNG_UP, cut=True) from None
        finally:
            talk.end()

    def _check_listing(self, talk: HttpConversation, asks: dict[str, Any]) -> None:
        found = Listing.from_json({"protocol": talk.revision, "tools": talk.list_tools()})
        if found.digest == asks["listing"]:
            return
        tool = asks["tool"]
        if tool not in found.tools:
            raise ListingDrifted(f"The server has no tool {tool!a} any more.", changed=["name"])
        if found.entry_digest(tool) != asks["entry"]:
            changed = list_entry_changes(self._read_pinned().tools[tool], found.tools[tool])
            raise ListingDrifted("The server lists the tool otherwise than it was reviewed.", changed=changed)
        runtime.warn("The server lists other tools otherwise than when this one was brought. This one is as it was.")

    def _read_pinned(self) -> Listing:
        with open(self._listing, "rb") as file:
            return Listing.from_bytes(file.read())

    def _ask(self, method: str, headers: Headers, body: bytes) -> HttpAnswer:
        lines = [f"{method} http://{self._authority}{self._path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append(f"Content-Length: {len(body)}")
        # A session that is not ended has nothing to do with the call's result.
        limit_s = _END_S if method == "DELETE" else None
        answer = ask_gate("\r\n".join([*lines, "", ""]).encode() + body, limit_s=limit_s)
        said = dict(reversed(answer.headers))
        pieces = answer.read_pieces()
        return HttpAnswer(answer.status, said, pieces, lambda: _finish(answer, pieces))


def _finish(answer: GateAnswer, pieces: Iterator[bytes]) -> None:
    """Let the answer end, so that the gate can say that it was whole."""
    until = time.monotonic() + _END_S
    answer.limit_wait(_END_S)
    with suppress(CutOff):
        for _ in pieces:
            if time.monotonic() > until:
                break
    answer.close()


def _log(line: str) -> None:
    print(line, flush=True)
