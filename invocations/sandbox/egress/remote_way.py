"""Remote way: what a run may say to a server of others that is somewhere else, by the one tool that was reviewed.

The gate reads each message before anything is connected to: which method of MCP it is, and of a call of which tool. It sends what it
has read, written anew, so that nobody reads it otherwise. What a call is for is asked for once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from invocations.sandbox.egress.service_way import (
    HTTPS_PORT,
    Question,
    ServiceCredential,
    ServiceWay,
    sort_hidden_texts,
)
from unitools.mcp_argument_headers import list_argument_headers
from unitools.mcp_http import MODERN, REVISION, SESSION, list_routing_headers
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from invocations.sandbox.egress.request_head import RequestHead

CALL = "tools/call"
INITIALIZE = "initialize"
# What a message of each method may have: some servers take `Name` for `name`.
_MODERN_PARAMS: dict[str, set[str]] = {"tools/list": {"cursor", "_meta"}, CALL: {"name", "arguments", "_meta"}}
_LEGACY_PARAMS: dict[str, set[str]] = _MODERN_PARAMS | {
    INITIALIZE: {"protocolVersion", "capabilities", "clientInfo"},
    "notifications/initialized": {"_meta"},
}
_PARTS = frozenset({"jsonrpc", "id", "method", "params"})
_MAX_DEPTH = 100
_MAX_BYTES = 2 * 1024 * 1024
_MAX_HEADER_BYTES = 8 * 1024  # of arguments: servers that take more are rare
_MAX_NESTED = 50_000  # lists and objects: reading them is time of the gate's one thread
_JSON = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class RemoteWay(ServiceWay):
    """``tool``: by the server's own name; ``revision``: of MCP, that is spoken; ``said``: which arguments are said in headers too."""

    tool: str = ""
    revision: str = MODERN
    said: tuple[dict[str, Any], ...] = ()

    @classmethod
    def build_for(
        cls,
        remote: Mapping[str, Any],
        asks: Mapping[str, Any],
        secrets: Mapping[str, str],
        hidden: Mapping[str, Iterable[str]] | None = None,
    ) -> RemoteWay:
        """``remote``: ``implementation.remote`` of a manifest, with the ``revision`` that is spoken. A credential whose secret is not
        there is left out. :class:`CredentialUnfit`."""
        url = urlsplit(remote["url"])
        return cls(
            method="POST",
            host=(url.hostname or "").lower(),
            port=url.port or HTTPS_PORT,
            base="",
            template=url.path or "/",
            headers=frozenset({SESSION.lower().encode()} if remote["revision"] < MODERN else ()),
            credentials=tuple(
                ServiceCredential.build(each, secrets[each["secret"]])
                for each in remote.get("credentials", ())
                if each["secret"] in secrets
            ),
            hidden=sort_hidden_texts(hidden),
            tool=asks["tool"],
            revision=remote["revision"],
            said=tuple(asks.get("headers", ())),
        )

    @property
    def modern(self) -> bool:
        """Whether each request stands by itself, and no session is begun."""
        return self.revision >= MODERN

    @property
    def methods(self) -> frozenset[str]:
        """A session that was begun is ended as well."""
        return frozenset({"POST"}) if self.modern else frozenset({"POST", "DELETE"})

    @property
    def answer_headers(self) -> frozenset[bytes]:
        return super().answer_headers | {SESSION.lower().encode()}

    @property
    def usual_headers(self) -> frozenset[bytes]:
        """Without what the body is written in: that is the gate's to say, since it writes the body."""
        return super().usual_headers - {b"content-type"}

    @property
    def most_bytes(self) -> int:
        return _MAX_BYTES

    def check(self, request: RequestHead) -> None:
        super().check(request)
        if b"?" in request.path:  # it could name another account than the address that was reviewed
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)

    def read_question(self, request: RequestHead, body: bytes) -> Question:
        """:class:`EgressDenied`, where the message is not one of this tool's."""
        if request.method == "DELETE":
            if body:
                raise EgressDenied(DenialReason.NOT_THE_OPERATION)
            return Question(counts=False, headers=_encode([(REVISION, self.revision)]))
        method, params, message = self._read_message(body)
        headers = [("Content-Type", "application/json")]
        if method != INITIALIZE:
            headers.append((REVISION, self.revision))
        if self.modern:
            headers += list_routing_headers(method, params)
        if method == CALL:
            headers += self._list_argument_headers(params)
        return Question(method, method == CALL, _encode(headers), _JSON.encode(message).encode())

    def _list_argument_headers(self, params: dict[str, Any]) -> list[tuple[str, str]]:
        arguments = params.get("arguments")
        found = list_argument_headers(self.said, arguments if isinstance(arguments, dict) else {})
        if sum(len(name) + len(value) for name, value in found) > _MAX_HEADER_BYTES:
            raise EgressDenied(DenialReason.TOO_MUCH)
        return found

    def _read_message(self, body: bytes) -> tuple[str, dict[str, Any], dict[str, Any]]:
        if body.count(b"[") + body.count(b"{") > _MAX_NESTED:
            raise EgressDenied(DenialReason.TOO_MUCH)
        try:
            message = STRICT.read(body.decode(), max_depth=_MAX_DEPTH)
        except (UnicodeDecodeError, JsonRefused, RecursionError) as error:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION) from error
        if not isinstance(message, dict) or not message.keys() <= _PARTS or message.get("jsonrpc") != "2.0":
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        method, params = message.get("method"), message.get("params", {})
        known = (_MODERN_PARAMS if self.modern else _LEGACY_PARAMS).get(method) if isinstance(method, str) else None
        if known is None or not isinstance(params, dict) or not params.keys() <= known:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        if method == CALL and params.get("name") != self.tool:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        return str(method), params, message


def _encode(headers: Iterable[tuple[str, str]]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in headers)
