"""Remote way: what a run may say to a server of others that is somewhere else, by the one tool that was reviewed.

The gate reads each message before anything is connected to: which method of MCP it is, and of a call of which tool. A message that
can be read in two ways is refused. What a call has is asked for once.
"""

from __future__ import annotations

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
from unitools.mcp_http import MODERN, REVISION, SESSION, list_routing_headers
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from invocations.sandbox.egress.request_head import RequestHead

CALL = "tools/call"
_MODERN_METHODS = frozenset({"tools/list", CALL})
_LEGACY_METHODS = _MODERN_METHODS | {"initialize", "notifications/initialized"}
_PARTS = frozenset({"jsonrpc", "id", "method", "params"})
_MAX_DEPTH = 100
_MAX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class RemoteWay(ServiceWay):
    """``tool``: by the server's own name."""

    tool: str = ""
    modern: bool = True

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
            headers=frozenset(each.lower().encode() for each in (REVISION, SESSION)),
            credentials=tuple(
                ServiceCredential.build(each, secrets[each["secret"]])
                for each in remote.get("credentials", ())
                if each["secret"] in secrets
            ),
            hidden=sort_hidden_texts(hidden),
            tool=asks["tool"],
            modern=remote["revision"] == MODERN,
        )

    @property
    def methods(self) -> frozenset[str]:
        """A session that was begun is ended as well."""
        return frozenset({"POST"}) if self.modern else frozenset({"POST", "DELETE"})

    @property
    def answer_headers(self) -> frozenset[bytes]:
        return super().answer_headers | {SESSION.lower().encode()}

    @property
    def most_bytes(self) -> int:
        return _MAX_BYTES

    def read_question(self, request: RequestHead, body: bytes) -> Question:
        """:class:`EgressDenied`, where the message is not one of this tool's."""
        if request.method == "DELETE":
            if body:
                raise EgressDenied(DenialReason.NOT_THE_OPERATION)
            return Question(counts=False)
        try:
            message = STRICT.read(body.decode(), max_depth=_MAX_DEPTH)
        except (UnicodeDecodeError, JsonRefused, RecursionError) as error:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION) from error
        if not isinstance(message, dict) or not message.keys() <= _PARTS or message.get("jsonrpc") != "2.0":
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        method, params = message.get("method"), message.get("params", {})
        allowed = _MODERN_METHODS if self.modern else _LEGACY_METHODS
        if method not in allowed or not isinstance(params, dict):
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        if method == CALL and params.get("name") != self.tool:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        headers = list_routing_headers(method, params) if self.modern else []
        return Question(
            asks=method,
            counts=method == CALL,
            headers=tuple((name.encode(), value.encode()) for name, value in headers),
        )
