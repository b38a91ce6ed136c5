"""OpenAPI requests: the HTTP request that a call of an operation becomes.

An operation is ``implementation.operation`` of a manifest. Values are an agent's, and none may leave the place that the operation
has for it. What a path's place holds stays one segment, a header's value stays one line, a query's value names no other parameter.
Standard library only: this runs in a box.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    Pairs = list[tuple[str, str]]

FORM = "application/x-www-form-urlencoded"
MAX_TARGET_CHARS = 16 * 1024
MAX_NESTING = 16
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
STYLES: dict[str, tuple[str, ...]] = {  # of each place, the usual one first
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
    "body": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
}
_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
# What the gate, the transport or a credential says. An agent that said it would speak for one of them.
RESERVED_HEADERS = frozenset({
    "accept", "accept-charset", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
    "content-type", "cookie", "cookie2", "date", "expect", "forwarded", "host", "http2-settings", "keep-alive", "origin",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "referer", "set-cookie", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "via", "x-http-method", "x-http-method-override", "x-method-override",
    "true-client-ip", "x-client-ip", "x-host", "x-real-ip", "x-rewrite-url",
})  # fmt: skip
_RESERVED_BEGINNINGS = ("proxy-", "sec-", "x-forwarded", "x-original-", "x-toolhub-")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?|")
_LEAVES_SEGMENT = re.compile(r"[/\\?#\x00-\x1f\x7f]")
MAX_ESCAPE_DEPTH = 8  # escapes within escapes; more of them are no value of anybody


class ArgumentRefused(ValueError):
    """An argument cannot be sent. The message names it and says what to do; ``argument`` is its name, or empty."""

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(f"{argument}: {message}" if argument else message)
        self.argument = argument


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


def is_token(name: str) -> bool:
    """Whether a header or a cookie can be called so (RFC 9110, 5.6.2)."""
    return _TOKEN.fullmatch(name) is not None


def build_request(
    operation: Mapping[str, Any], arguments: Mapping[str, Any], *, idempotency_key: str = ""
) -> ServiceRequest:
    """The request of a call. ``arguments`` have been held against ``input_schema``.

    Raises:
        ArgumentRefused: what an argument says cannot be said in its place.
    """
    known = {each["argument"]: each for each in operation.get("arguments", ())}
    body_said = operation.get("body") or {}
    for name in arguments:
        if name not in known and name != body_said.get("argument"):
            raise ArgumentRefused(name, "The operation has no such argument.")
    given: dict[str, list[tuple[dict[str, Any], Any]]] = {place: [] for place in STYLES}
    for name, each in known.items():
        if name in arguments:
            given[each["in"]].append((each, arguments[name]))
    path = _build_path(operation["path"], given["path"])
    query = _build_query(operation, given["query"])
    headers = [("Accept", ", ".join(operation.get("accept") or ["application/json"])), ("Accept-Encoding", "identity")]
    headers += _build_headers(given["header"])
    if cookies := _build_cookies(given["cookie"]):
        headers.append(("Cookie", cookies))
    if idempotency_key and operation.get("idempotency_header"):
        headers.append((operation["idempotency_header"], _check_header("", idempotency_key)))
    body = _build_body(operation, body_said, given["body"], arguments) if body_said else None
    if body is not None:
        headers.append(("Content-Type", body_said["media_type"]))
    target = f"{path}?{query}" if query else path
    if len(target) > MAX_TARGET_CHARS:
        message = f"The address would have {len(target):,} characters; it has at most {MAX_TARGET_CHARS:,}. Send less."
        raise ArgumentRefused("", message)
    return ServiceRequest(operation["method"], target, tuple(headers), body)


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
        return _segment_text(name, _dump_json(name, value))
    key = quote(said["name"], safe="")
    texts = [
        (each_key and _segment_text(name, each_key), _segment_text(name, text)) for each_key, text in _flat(name, value)
    ]
    if not texts:
        raise ArgumentRefused(name, "An empty value has no place in a path.")
    is_object = isinstance(value, dict)
    if style == "matrix":
        if not explode or not isinstance(value, dict | list):
            return f";{key}={_join(texts, ',', ',')}"
        return "".join(f";{each}={text}" if is_object else f";{key}={text}" for each, text in texts)
    between = "." if style == "label" and explode else ","
    return ("." if style == "label" else "") + _join(texts, between, "=" if explode else ",")


def _join(texts: Sequence[tuple[str, str]], between: str, sign: str) -> str:
    return between.join(f"{key}{sign}{text}" if key else text for key, text in texts)


def _segment_text(name: str, text: str) -> str:
    """One value of a path, encoded once; it must stay one segment however often a server decodes it."""
    if not text:
        raise ArgumentRefused(name, "An empty value has no place in a path.")
    for depth, step in enumerate(_decode_steps(text)):
        if depth >= MAX_ESCAPE_DEPTH or leaves_path(step) or not step or _LEAVES_SEGMENT.search(step):
            raise ArgumentRefused(
                name, "A value in a path is no `.` or `..` and holds no / \\ ? # or line end, nor their escapes."
            )
    return _quote(name, text)


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
            pairs += _write_pairs(said, value, taken - {said["name"]}, credentials)
    return "&".join(f"{key}={text}" for key, text in pairs)


def _list_names(operation: Mapping[str, Any], place: str) -> set[str]:
    return {each["name"] for each in operation.get("arguments", ()) if each["in"] == place}


def fold_name(name: str) -> str:
    """The name of a parameter as the most forgiving service reads it: ``Key[]`` and ``key`` are one."""
    return name.partition("[")[0].lower()


def _write_pairs(said: dict[str, Any], value: Any, taken: set[str], credentials: Container[str] = frozenset()) -> Pairs:
    """``key=value`` of a query or a form, both encoded. ``taken``: names that an object's own keys must not become, since a second
    value would pass by what was decided about the first; ``credentials``: those that the gate says, folded."""
    name, style = said["argument"], said.get("style", "form")
    explode = said.get("explode", style in ("form", "deepObject"))
    key = _quote(name, said["name"])
    if said.get("as_json"):
        return [(key, _quote(name, _dump_json(name, value)))]
    if style == "deepObject" and isinstance(value, dict | list):
        nested = list(_nested(name, said["name"], value, 0))
        _check_own_names(name, (path for path, _ in nested), taken, credentials)
        return [(_quote(name, path), _quote(name, text)) for path, text in nested]
    if not isinstance(value, dict | list):
        return [(key, _quote(name, _scalar(name, value)))]
    texts = _flat(name, value)
    if explode and isinstance(value, dict):
        _check_own_names(name, value, taken, credentials)
        return [(_quote(name, each), _quote(name, text)) for each, text in texts]
    if explode:
        return [(key, _quote(name, text)) for _, text in texts]
    sign = _DELIMITERS.get(style, ",")
    quoted = [(each and _quote(name, each), _quote(name, text)) for each, text in texts]
    return [(key, _join(quoted, sign, sign))] if quoted else []


def _check_own_names(name: str, keys: Iterable[str], taken: Container[str], credentials: Container[str]) -> None:
    for key in keys:
        if key in taken or fold_name(key) in credentials:
            raise ArgumentRefused(name, f"Its key {key[:60]!a} is a parameter of its own. Leave it out.")


def _nested(name: str, path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """``path[key][0]=text``, as deepObject is written where it goes on below its first level."""
    if depth > MAX_NESTING:
        raise ArgumentRefused(name, f"It is nested more than {MAX_NESTING} levels deep.")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nested(name, f"{path}[{_check_key(name, key)}]", inner, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nested(name, f"{path}[{index}]", inner, depth + 1)
    else:
        yield path, "" if value is None else _scalar(name, value)


def _check_key(name: str, key: str) -> str:
    if "[" in key or "]" in key:
        raise ArgumentRefused(name, f"A key of it holds a bracket, so it would be read as another: {key[:60]!a}.")
    return key


def _build_headers(given: Sequence[tuple[dict[str, Any], Any]]) -> Iterator[tuple[str, str]]:
    for said, value in given:
        name = said["argument"]
        if is_reserved_header(said["name"]) or not is_token(said["name"]):
            raise ArgumentRefused(name, f"The header {said['name'][:60]!a} is not an agent's to set.")
        if value is None:
            continue
        text = (
            _dump_json(name, value)
            if said.get("as_json")
            else _join(_flat(name, value), ",", "=" if said.get("explode") else ",")
        )
        yield said["name"], _check_header(name, text)


def _check_header(name: str, text: str) -> str:
    if not _HEADER_VALUE.fullmatch(text):
        raise ArgumentRefused(name, "A header's value is printable ASCII on one line, without spaces at its ends.")
    return text


def _build_cookies(given: Sequence[tuple[dict[str, Any], Any]]) -> str:
    written = []
    for said, value in given:
        name = said["argument"]
        if not is_token(said["name"]):
            raise ArgumentRefused(name, f"No cookie can be called {said['name'][:60]!a}.")
        if value is None:
            continue
        texts = [("", _dump_json(name, value))] if said.get("as_json") else _flat(name, value)
        quoted = [(each and _quote(name, each), _quote(name, text)) for each, text in texts]
        written.append(f"{said['name']}={_join(quoted, ',', ',')}")
    return "; ".join(written)


def _build_body(
    operation: Mapping[str, Any],
    body: Mapping[str, Any],
    given: Sequence[tuple[dict[str, Any], Any]],
    arguments: Mapping[str, Any],
) -> bytes | None:
    whole = body.get("argument")
    if whole is not None:
        if whole not in arguments:
            return None
        value = arguments[whole]
        if body["media_type"] == FORM:
            if not isinstance(value, dict):
                raise ArgumentRefused(whole, "A form is an object.")
            pairs = [
                pair
                for key, each in value.items()
                for pair in _form_pairs({"argument": whole, "name": key}, each, value.keys() - {key})
            ]
            return "&".join(f"{key}={text}" for key, text in pairs).encode()
        return _dump_json(whole, value).encode()
    if not given and operation["method"] not in ("POST", "PUT", "PATCH"):
        return None
    if body["media_type"] == FORM:
        taken = _list_names(operation, "body")
        pairs = [pair for said, value in given for pair in _form_pairs(said, value, taken - {said["name"]})]
        return "&".join(f"{key}={text}" for key, text in pairs).encode()
    return _dump_json("", {said["name"]: value for said, value in given}).encode()


def _form_pairs(said: dict[str, Any], value: Any, taken: set[str]) -> Pairs:
    """Of a form, where null empties what was there, and what is nested without a style is written as deepObject."""
    if value is None:
        return [(_quote(said["argument"], said["name"]), "")]
    is_nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
    )
    if is_nested and "style" not in said and not said.get("as_json"):
        said = said | {"style": "deepObject"}
    return _write_pairs(said, value, taken)


# Values.


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    """A value as ``(key, text)`` of its entries; keys are empty but for an object's."""
    if isinstance(value, dict):
        return [(key, _scalar(name, each)) for key, each in value.items() if each is not None]
    if isinstance(value, list):
        return [("", _scalar(name, each)) for each in value]
    return [("", _scalar(name, value))]


def _scalar(name: str, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _dump_json(name, value)
        case None:
            raise ArgumentRefused(name, "Null cannot be written there. Leave it out.")
        case _:
            raise ArgumentRefused(name, "A list or an object cannot be written within another one there.")


def _dump_json(name: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError is one
        raise ArgumentRefused(
            name, "It holds what is no JSON: NaN, half of a character, or endless nesting."
        ) from error
    return text


def _quote(name: str, text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise ArgumentRefused(name, "It holds half of a character.") from error
