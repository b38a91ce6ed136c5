"""Service way: the one operation of a service that a run may ask for, and what the gate adds to it.

The box speaks plain http to the gate; what it asks for is held against the operation that was reviewed: method, server, the path
with every escape undone. Whatever fits it otherwise than a service would read it is refused. Credentials are added here, so they
are in no box.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, unquote_plus, unquote_to_bytes, urlencode, urlsplit

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from sandbox.protocol import MAX_FRAME_BYTES
from unitools.openapi.argument_values import fold_name
from unitools.openapi.request_bodies import FORM
from unitools.openapi.requests import MAX_ESCAPE_DEPTH, leaves_path
from unitools.service_credentials import PLAIN, encode_credential, fits_header
from unitools.strict_json import JsonReader, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from invocations.sandbox.egress.request_head import RequestHead

HTTPS_PORT = 443
HEADER, QUERY, COOKIE, BODY = "header", "query", "cookie", "body"
AGENT = b"toolhub"  # some services answer nobody who does not say what he is

_READER = JsonReader()
_SEGMENT = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_COOKIE_VALUE = re.compile(r"[!#-+\--:<-\[\]-~]+")
_VARIABLE = re.compile(r"\{[^{}/]+\}")
_USUAL_HEADERS = frozenset({b"accept", b"accept-encoding", b"accept-language", b"content-type"})
# Never the box's, whatever the document calls an argument: who asks, and through whom.
_NEVER = frozenset(
    {b"authorization", b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"via"}
)


class CredentialUnfit(ValueError):
    """A secret cannot be sent where the operation wants it. The message names the secret and says why, without its value."""


@dataclass(frozen=True, slots=True)
class ServiceCredential:
    """``secret``: its name, which evidence has; ``place``: header, query, cookie or body; ``value``: as it is sent there."""

    secret: str
    place: str
    name: str
    value: str = field(repr=False)

    @classmethod
    def build(cls, said: Mapping[str, str], value: str) -> ServiceCredential:
        """``said``: an entry of the operation's ``credentials``. :class:`CredentialUnfit`."""
        place, scheme = said["in"], said.get("scheme", PLAIN)
        value = encode_credential(scheme, value)
        if place == HEADER and not fits_header(value):
            raise CredentialUnfit(
                f"The secret {said['secret']} holds what no header can: a line break, or a space at an end."
            )
        if place == COOKIE and not _COOKIE_VALUE.fullmatch(value):
            raise CredentialUnfit(
                f"The secret {said['secret']} holds what no cookie can, such as a space or a semicolon."
            )
        return cls(said["secret"], place, said["name"], value)


@dataclass(frozen=True, slots=True)
class Question:
    """What a request asks for, once its body is there. ``asks``: the method of MCP, where it is one; ``counts``: whether the call is
    for it; ``headers``: what the gate says of it; ``body``: what it sends in place of the box's."""

    asks: str = ""
    counts: bool = True
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes | None = None


def sort_hidden_texts(hidden: Mapping[str, Iterable[str]] | None) -> dict[str, tuple[str, ...]]:
    """The longest first: others may be a part of it."""
    return {name: tuple(sorted(forms, key=len, reverse=True)) for name, forms in (hidden or {}).items()}


@dataclass(frozen=True)
class ServiceWay:
    """One operation. ``base``: the path of the server, without a slash at its end; ``template``: of the operation below it.

    ``headers``: those that arguments may set, in small letters. ``media_type``: of a body to which credentials are added.
    ``hidden``: by the name of a secret, the texts that give it away.
    """

    method: str
    host: str
    port: int
    base: str
    template: str
    headers: frozenset[bytes] = frozenset()
    cookies: bool = False
    media_type: str = ""
    credentials: tuple[ServiceCredential, ...] = ()
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def build(
        cls,
        operation: Mapping[str, Any],
        secrets: Mapping[str, str],
        hidden: Mapping[str, Iterable[str]] | None = None,
    ) -> ServiceWay:
        """``operation``: ``implementation.operation`` of a manifest. A credential whose secret is not there is left out."""
        server = urlsplit(operation["server"])
        named = [each["name"].lower().encode() for each in operation.get("arguments", ()) if each["in"] == HEADER]
        if key := operation.get("idempotency_header"):
            named.append(key.lower().encode())
        return cls(
            method=operation["method"],
            host=(server.hostname or "").lower(),
            port=server.port or HTTPS_PORT,
            base=server.path.rstrip("/"),
            template=operation["path"],
            headers=frozenset(named),
            cookies=any(each["in"] == COOKIE for each in operation.get("arguments", ())),
            media_type=operation.get("body", {}).get("media_type", ""),
            credentials=tuple(
                ServiceCredential.build(each, secrets[each["secret"]])
                for each in operation.get("credentials", ())
                if each["secret"] in secrets
            ),
            hidden=sort_hidden_texts(hidden),
        )

    @property
    def path(self) -> str:
        """What evidence says of the path: the template, below the server's own."""
        return self.base + self.template

    @property
    def authority(self) -> str:
        """What ``Host`` says."""
        return self.host if self.port == HTTPS_PORT else f"{self.host}:{self.port}"

    @property
    def methods(self) -> frozenset[str]:
        return frozenset({self.method})

    @property
    def usual_headers(self) -> frozenset[bytes]:
        """What the box may say of any request, in small letters."""
        return _USUAL_HEADERS

    @property
    def answer_headers(self) -> frozenset[bytes]:
        """What the box is told of the head of an answer, in small letters: all that its interpreter looks at. Cookies, what proxies
        add and what names the service's machines stay outside."""
        return frozenset({b"content-type", b"content-encoding", b"link", b"retry-after"})

    @property
    def most_bytes(self) -> int:
        """Of a request's body; the gate's own limit holds beside it."""
        return MAX_FRAME_BYTES

    # -- what is asked for

    def check(self, request: RequestHead) -> None:
        """:class:`EgressDenied`, where this is another request than the operation's."""
        target = request.target
        if request.method not in self.methods or target.address:
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        if (target.host, target.port) != (self.host, self.port):
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        path, _, query = request.path.partition(b"?")
        if b"#" in request.path or not self._fits(path) or self._names_credential(query):
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)

    @cached_property
    def _pattern(self) -> list[re.Pattern[bytes]]:
        """Of each segment of the path."""
        return [_segment_pattern(each) for each in self.path.split("/")[1:]]

    def _fits(self, path: bytes) -> bool:
        segments = path.split(b"/")
        if segments[0] or len(segments) - 1 != len(self._pattern):
            return False
        return all(_fits(raw, pattern) for raw, pattern in zip(segments[1:], self._pattern, strict=True))

    def _names_credential(self, query: bytes) -> bool:
        names = {fold_name(each.name) for each in self.credentials if each.place == QUERY}
        return bool(names) and any(
            fold_name(unquote(part.partition("=")[0].replace("+", " "), "latin-1")) in names
            for part in re.split("[&;]", query.decode("latin-1"))
        )

    def read_question(self, request: RequestHead, body: bytes) -> Question:
        """What the whole of the request asks for, with the credentials that stand in its body."""
        del request
        ours = {each.name: each.value for each in self.credentials if each.place == BODY}
        return Question(body=_add_to_body(self.media_type, body, ours)) if ours else Question()

    # -- what is sent

    def head(self, request: RequestHead, *, length: int, more: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """The head of the request as the service gets it. ``length`` of its body; ``more``: what the gate says of it."""
        path = request.path
        for each in self.credentials:
            if each.place == QUERY:
                path += b"&" if b"?" in path else b"?"
                path += f"{quote(each.name, safe='')}={quote(each.value, safe='')}".encode()
        lines = [f"{request.method} ".encode() + path + b" HTTP/1.1", f"Host: {self.authority}".encode()]
        cookies: list[bytes] = []
        names: set[bytes] = set()
        for name, value in request.headers:
            small = name.lower()
            if small == b"cookie":
                cookies += [value] if self.cookies and not self._sets_cookie_of_credential(value) else []
            elif self._may_set(small):
                names.add(small)
                lines.append(name + b": " + value)
        lines += [name + b": " + value for name, value in more]
        if b"user-agent" not in names:
            lines.append(b"User-Agent: " + AGENT)
        for each in self.credentials:
            if each.place == HEADER:
                lines.append(f"{each.name}: ".encode() + each.value.encode("latin-1"))
            elif each.place == COOKIE:
                cookies.append(f"{each.name}={each.value}".encode())
        if cookies:
            lines.append(b"Cookie: " + b"; ".join(cookies))
        if length or request.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {length}".encode())
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])

    def _may_set(self, name: bytes) -> bool:
        """Whether the box may say this header. Those of credentials are the gate's, whatever an argument is called."""
        ours = {each.name.lower().encode() for each in self.credentials if each.place == HEADER}
        return name in self.usual_headers | self.headers and name not in ours | _NEVER

    def _sets_cookie_of_credential(self, value: bytes) -> bool:
        ours = {each.name.encode() for each in self.credentials if each.place == COOKIE}
        return any(part.partition(b"=")[0].strip() in ours for part in value.split(b";"))

    # -- what comes back

    def hide(self, value: bytes) -> bytes:
        """A header's value without any credential."""
        for name, forms in self.hidden.items():
            for form in forms:
                value = value.replace(form.encode(), f"[secret {name}]".encode())
                with suppress(UnicodeEncodeError):  # as some services write what is not ASCII
                    value = value.replace(form.encode("latin-1"), f"[secret {name}]".encode())
        return value


def _add_to_body(media_type: str, body: bytes, ours: Mapping[str, str]) -> bytes:
    """:class:`EgressDenied` for a body that says one of them itself, or cannot be read as what it is."""
    if media_type == FORM:
        said = {fold_name(unquote_plus(each.partition("=")[0])) for each in body.decode("latin-1").split("&")}
        if said & set(map(fold_name, ours)):
            raise EgressDenied(DenialReason.NOT_THE_OPERATION)
        return b"&".join([*([body] if body else []), urlencode(ours).encode()])
    try:
        found = _READER.read(body or b"{}")
    except JsonRefused as error:
        raise EgressDenied(DenialReason.NOT_THE_OPERATION) from error
    if not isinstance(found, dict) or {each.casefold() for each in found} & {each.casefold() for each in ours}:
        raise EgressDenied(DenialReason.NOT_THE_OPERATION)
    added = json.dumps(ours, ensure_ascii=False).encode()
    # What the box has written stays as it is: read and written anew its numbers might be others.
    return body.rstrip()[:-1] + b"," + added[1:] if found else added


def _segment_pattern(segment: str) -> re.Pattern[bytes]:
    """Of the decoded segment. What stands for a variable is not empty."""
    fixed = _VARIABLE.split(segment)
    return re.compile(b"(?s:.+)".join(re.escape(unquote_to_bytes(each)) for each in fixed))


def _fits(raw: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether it is the template's segment, at every depth at which somebody may undo escapes."""
    if not raw:
        return pattern.pattern == b""
    if not _SEGMENT.fullmatch(raw) or not pattern.fullmatch(unquote_to_bytes(raw)):
        return False
    for _ in range(MAX_ESCAPE_DEPTH):
        plain = unquote_to_bytes(raw)
        if leaves_path(plain.decode("latin-1")) or any(
            each in b"/\\?#" or each < 0x20 or each == 0x7F for each in plain
        ):
            return False
        if not _ESCAPE.search(plain):
            return True
        raw = plain
    return False
