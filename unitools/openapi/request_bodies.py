"""Request bodies: what a call of an operation sends behind the head of its request: JSON, a form, a text, or files.

A file is named by an id among the arguments, and the hub gives its content beside them. Standard library only: this runs in a box.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unitools.openapi.argument_values import (
    ArgumentRefused,
    dump_json,
    encode_text,
    is_token,
    quote_text,
    write_header,
    write_pairs,
    write_scalar,
)
from unitools.openapi.multipart import MULTIPART, UNKNOWN, FormPart, write_multipart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from unitools.openapi.argument_values import Pairs

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class RequestFile:
    """A file that the hub gives to a call. ``media_type``: as the hub has found it; application/octet-stream where it has not."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """``media_type``: as its header says."""

    media_type: str
    content: bytes = field(repr=False)


def is_json(media: str) -> bool:
    return media == JSON or (media.startswith("application/") and media.endswith("+json"))


def build_body(
    operation: Mapping[str, Any],
    given: Sequence[tuple[dict[str, Any], Any]],
    arguments: Mapping[str, Any],
    files: Mapping[str, RequestFile],
) -> RequestBody | None:
    """``given``: the arguments of the place body, with their values. None: the call sends none. An empty one is there all the same
    where the gate adds a credential to it, so that its media type is said."""
    body = operation.get("body")
    if not body:
        return None
    media, whole = body["media_type"], body.get("argument")
    if whole is None:
        is_added_to = any(each["in"] == "body" for each in operation.get("credentials", ()))
        is_wanted = is_added_to or body.get("required") or operation["method"] in ("POST", "PUT", "PATCH")
        if not given and not is_wanted:
            return None
        names = {each["name"] for each in operation.get("arguments", ()) if each["in"] == "body"}
        if media == MULTIPART:
            return _write_parts(given, files, is_required=body.get("required", False))
        if media == FORM:
            return _write_form((said, value, names - {said["name"]}) for said, value in given)
        return RequestBody(media, dump_json("", {said["name"]: value for said, value in given}).encode())
    if whole not in arguments:
        return None
    value = arguments[whole]
    if body.get("file"):
        file = _find_file(whole, value, files)
        return RequestBody(choose_media_type(whole, file.media_type, list_wanted_types(operation, whole)), file.content)
    if media in (FORM, MULTIPART):
        if not isinstance(value, dict):
            raise ArgumentRefused(whole, "A form is an object.")
        named = [({"argument": whole, "name": key}, each) for key, each in value.items()]
        if media == MULTIPART:
            return _write_parts(named, files)
        return _write_form((said, each, value.keys() - {said["name"]}) for said, each in named)
    if is_json(media):
        return RequestBody(media, dump_json(whole, value).encode())
    if not isinstance(value, str):
        raise ArgumentRefused(whole, f"What is sent as {media} is one text.")
    return RequestBody(f"{media}; charset=utf-8" if media.startswith("text/") else media, encode_text(whole, value))


# Forms of texts.


def _write_form(given: Iterator[tuple[dict[str, Any], Any, set[str]]]) -> RequestBody:
    pairs = [pair for said, value, taken in given for pair in _list_pairs(said, value, taken)]
    return RequestBody(FORM, "&".join(f"{key}={text}" for key, text in pairs).encode())


def _list_pairs(said: dict[str, Any], value: Any, taken: set[str]) -> Pairs:
    """Of a form, where null empties what was there, and what is nested without a style is written as deepObject."""
    if value is None:
        return [(quote_text(said["argument"], said["name"]), "")]
    is_nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
    )
    if is_nested and "style" not in said and not said.get("as_json"):
        said = said | {"style": "deepObject"}
    return write_pairs(said, value, taken)


# Forms of parts.


def _write_parts(
    given: Sequence[tuple[dict[str, Any], Any]], files: Mapping[str, RequestFile], *, is_required: bool = False
) -> RequestBody | None:
    """None where it would have no part, since a form of parts has at least one."""
    headers: dict[str, list[tuple[str, str]]] = {}
    for said, value in given:
        if "header" in said and value is not None:
            if not is_token(said["header"]):
                raise ArgumentRefused(said["argument"], "No header of a part can be called as it is.")
            headers.setdefault(said["name"], []).append((said["header"], write_header(said, value)))
    parts = [
        replace(part, headers=tuple(headers.get(part.name, ())))
        for said, value in given
        if "header" not in said
        for part in _list_parts(said, value, files)
    ]
    sent = {part.name for part in parts}
    for said, value in given:
        if "header" in said and value is not None and said["name"] not in sent:
            raise ArgumentRefused(said["argument"], f"It is said of the part {said['name']}, which is not sent.")
    if is_required and not parts:
        raise ArgumentRefused(
            "", "The service wants a form with at least one part. Say one of the arguments that are parts."
        )
    return RequestBody(*write_multipart(parts)) if parts else None


def _list_parts(said: dict[str, Any], value: Any, files: Mapping[str, RequestFile]) -> Iterator[FormPart]:
    """A list is a part for each of its entries, unless it is written as JSON as a whole; of null there is none."""
    argument, name = said["argument"], said["name"]
    wanted = said.get("media_types", [])
    if value is None:
        return
    if said.get("as_json"):
        yield FormPart(name, dump_json(argument, value).encode(), wanted[0] if wanted else JSON)
        return
    for each in value if isinstance(value, list) else [value]:
        if said.get("file"):
            file = _find_file(argument, each, files)
            yield FormPart(name, file.content, choose_media_type(argument, file.media_type, wanted), file.name)
        elif isinstance(each, dict | list):
            yield FormPart(name, dump_json(argument, each).encode(), JSON)
        else:
            text = encode_text(argument, write_scalar(argument, each))
            yield FormPart(name, text, wanted[0] if wanted else "")


# Files.


def _find_file(argument: str, id: Any, files: Mapping[str, RequestFile]) -> RequestFile:
    found = files.get(id) if isinstance(id, str) else None
    if found is None:
        raise ArgumentRefused(argument, "It names no file of this call: write the id of an artifact or of a file.")
    return found


def list_wanted_types(operation: Mapping[str, Any], argument: str) -> Sequence[str]:
    """The media types of a file that the service takes there; none: any."""
    body: Mapping[str, Any] = operation.get("body") or {}
    found: Sequence[str] = ()
    if body.get("file") and body.get("argument") == argument:
        found = body.get("media_types") or [body["media_type"]]
    for each in operation.get("arguments", ()):
        if each["argument"] == argument:
            found = each.get("media_types", ())
    return found


def choose_media_type(argument: str, own: str, wanted: Sequence[str]) -> str:
    """As which a file is sent: what it is, where the service takes that; of what nobody knows the service's own word is said."""
    if not wanted or any(_fits(own, each) for each in wanted):
        return own
    if UNKNOWN in wanted:
        return UNKNOWN
    if len(wanted) == 1 and "*" not in wanted[0] and (own == UNKNOWN or (own, wanted[0][:5]) == (_TEXT, "text/")):
        return wanted[0]
    listed = ", ".join(wanted[:5])
    raise ArgumentRefused(argument, f"The file is {own}; the service takes {listed}. Send one of these.")


def _fits(own: str, wanted: str) -> bool:
    return wanted in (own, "*/*") or (wanted.endswith("/*") and own.startswith(wanted[:-1]))
