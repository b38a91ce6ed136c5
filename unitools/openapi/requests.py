"""OpenAPI requests: the HTTP request that a call of an operation becomes.

An operation is ``implementation.operation`` of a manifest. Values are an agent's, and none may leave the place that the operation
has for it. What a path's place holds stays one segment, a header's value stays one line, a query's value names no other parameter.
Standard library only: this runs in a box.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from unitools.openapi.argument_values import (
    ArgumentRefused,
    check_header,
    dump_json,
    flatten_value,
    fold_name,
    is_token,
    join_texts,
    quote_text,
    write_header,
    write_pairs,
)
from unitools.openapi.request_bodies import JSON, build_body, is_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from unitools.openapi.request_bodies import RequestFile

MAX_TARGET_CHARS = 16 * 1024
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
STYLES: dict[str, tuple[str, ...]] = {  # of each place, the usual one first
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
    "body": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
}
# What the gate, the transport or a credential says. An agent that said it would speak for one of them.
RESERVED_HEADERS = frozenset({
    "accept", "accept-charset", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
    "content-type", "cookie", "cookie2", "date", "expect", "forwarded", "host", "http2-settings", "keep-alive", "origin",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "referer", "set-cookie", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "via", "x-http-method", "x-http-method-override", "x-method-override",
    "true-client-ip", "x-client-ip", "x-host", "x-real-ip", "x-rewrite-url",
})  # fmt: skip
_RESERVED_BEGINNINGS = ("proxy-", "sec-", "x-forwarded", "x-original-", "x-toolhub-")
_LEAVES_SEGMENT = re.compile(r"[/\\?#\x00-\x1f\x7f]")
MAX_ESCAPE_DEPTH = 8  # escapes within escapes; more of them are no value of anybody


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """``target``: path and query below ``operation.server``, as they stand on the wire. ``headers``: without Host, Content-Length and
    credentials, which are the gate's. ``body``: None where there is none."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None


def is_reserved_header(name: str) -> bool:
    """Whether the header is not an agent's to set."""
    small = name.lower()
    return small in RESERVED_HEADERS or small.startswith(_RESERVED_BEGINNINGS)


def build_request(
    operation: Mapping[str, Any],
    arguments: Mapping[str, Any],
    *,
    idempotency_key: str = "",
    files: Mapping[str, RequestFile] | None = None,
) -> ServiceRequest:
    """The request of a call. ``arguments`` have been held against ``input_schema``; ``files``: those that they name, by their ids.

    Raises:
        ArgumentRefused: what an argument says cannot be said in its place.
    """
    known = {each["argument"]: each for each in operation.get("arguments", ())}
    whole = (operation.get("body") or {}).get("argument")
    for name in arguments:
        if name not in known and name != whole:
            raise ArgumentRefused(name, "The operation has no such argument.")
    given: dict[str, list[tuple[dict[str, Any], Any]]] = {place: [] for place in STYLES}
    for name, each in known.items():
        if name in arguments:
            given[each["in"]].append((each, arguments[name]))
    path = _build_path(operation["path"], given["path"])
    query = _build_query(operation, given["query"])
    headers = [("Accept", _write_accept(operation.get("accept") or [JSON])), ("Accept-Encoding", "identity")]
    headers += _build_headers(given["header"])
    if cookies := _build_cookies(given["cookie"]):
        headers.append(("Cookie", cookies))
    if idempotency_key and operation.get("idempotency_header"):
        headers.append((operation["idempotency_header"], check_header("", idempotency_key)))
    body = build_body(operation, given["body"], arguments, files or {})
    if body is not None:
        headers.append(("Content-Type", body.media_type))
    target = f"{path}?{query}" if query else path
    if len(target) > MAX_TARGET_CHARS:
        message = f"The address would have {len(target):,} characters; it has at most {MAX_TARGET_CHARS:,}. Send less."
        raise ArgumentRefused("", message)
    return ServiceRequest(operation["method"], target, tuple(headers), body.content if body else None)


def _write_accept(accept: Sequence[str]) -> str:
    """Where an answer may be JSON or a file, JSON is wanted more."""
    if not any(map(is_json, accept)):
        return ", ".join(accept)
    return ", ".join(each if is_json(each) or each.startswith("text/") else f"{each};q=0.5" for each in accept)


def _build_path(template: str, given: Sequence[tuple[dict[str, Any], Any]]) -> str:
    values = {said["name"]: (said, value) for said, value in given}

    def write(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise ArgumentRefused("", f"The path {template} needs a value for {found[1]}.")
        return _write_segment(*values[found[1]])

    # What stands between the placeholders is the document's; it is written as it is, but for signs that no path may have.
    parts, at = [], 0
    for found in PLACEHOLDER.finditer(template):
        parts += [quote(template[at : found.start()], safe="/:@!$&'()*+,;=~"), write(found)]
        at = found.end()
    path = "".join([*parts, quote(template[at:], safe="/:@!$&'()*+,;=~")])
    for segment in path.split("/")[1:]:
        if any(map(leaves_path, _decode_steps(segment))):
            raise ArgumentRefused("", f"The values make a part of the path {template} that leads out of it.")
    return path


def leaves_path(segment: str) -> bool:
    """Whether some server takes the segment for one that leads out of the path: some drop what follows a semicolon before they look
    for dots, and some the spaces around them."""
    return segment.partition(";")[0].strip(" ") in (".", "..")


def _write_segment(said: dict[str, Any], value: Any) -> str:
    name, style, explode = said["argument"], said.get("style", "simple"), said.get("explode", False)
    if said.get("as_json"):
        return _segment_text(name, dump_json(name, value))
    key = quote(said["name"], safe="")
    texts = [
        (each_key and _segment_text(name, each_key), _segment_text(name, text))
        for each_key, text in flatten_value(name, value)
    ]
    if not texts:
        raise ArgumentRefused(name, "An empty value has no place in a path.")
    is_object = isinstance(value, dict)
    if style == "matrix":
        if not explode or not isinstance(value, dict | list):
            return f";{key}={join_texts(texts, ',', ',')}"
        return "".join(f";{each}={text}" if is_object else f";{key}={text}" for each, text in texts)
    between = "." if style == "label" and explode else ","
    return ("." if style == "label" else "") + join_texts(texts, between, "=" if explode else ",")


def _segment_text(name: str, text: str) -> str:
    """One value of a path, encoded once; it must stay one segment however often a server decodes it."""
    if not text:
        raise ArgumentRefused(name, "An empty value has no place in a path.")
    for depth, step in enumerate(_decode_steps(text)):
        if depth >= MAX_ESCAPE_DEPTH or leaves_path(step) or not step or _LEAVES_SEGMENT.search(step):
            raise ArgumentRefused(
                name, "A value in a path is no `.` or `..` and holds no / \\ ? # or line end, nor their escapes."
            )
    return quote_text(name, text)


def _decode_steps(text: str) -> Iterator[str]:
    """The text as it is, and decoded as often as it can be: each step is shorter."""
    while True:
        yield text
        decoded = unquote(text, errors="replace")
        if decoded == text:
            return
        text = decoded


def _build_query(operation: Mapping[str, Any], given: Sequence[tuple[dict[str, Any], Any]]) -> str:
    pairs: list[tuple[str, str]] = []
    taken = _list_names(operation, "query")
    credentials = {fold_name(each["name"]) for each in operation.get("credentials", ()) if each["in"] == "query"}
    for said, value in given:
        if value is not None:
            pairs += write_pairs(said, value, taken - {said["name"]}, credentials)
    return "&".join(f"{key}={text}" for key, text in pairs)


def _list_names(operation: Mapping[str, Any], place: str) -> set[str]:
    return {each["name"] for each in operation.get("arguments", ()) if each["in"] == place}


def _build_headers(given: Sequence[tuple[dict[str, Any], Any]]) -> Iterator[tuple[str, str]]:
    for said, value in given:
        name = said["argument"]
        if is_reserved_header(said["name"]) or not is_token(said["name"]):
            raise ArgumentRefused(name, f"The header {said['name'][:60]!a} is not an agent's to set.")
        if value is None:
            continue
        yield said["name"], write_header(said, value)


def _build_cookies(given: Sequence[tuple[dict[str, Any], Any]]) -> str:
    written = []
    for said, value in given:
        name = said["argument"]
        if not is_token(said["name"]):
            raise ArgumentRefused(name, f"No cookie can be called {said['name'][:60]!a}.")
        if value is None:
            continue
        texts = [("", dump_json(name, value))] if said.get("as_json") else flatten_value(name, value)
        quoted = [(each and quote_text(name, each), quote_text(name, text)) for each, text in texts]
        written.append(f"{said['name']}={join_texts(quoted, ',', ',')}")
    return "; ".join(written)
