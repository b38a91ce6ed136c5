"""OpenAPI part headers: what a document says of the headers of one part of a form, each an argument of its own.

No argument are what the form itself says of a part, and what says who is asking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.openapi.argument_values import is_token
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit, escape_token
from unitools.openapi.parts import OperationArgument, is_json
from unitools.openapi.requests import is_reserved_header
from unitools.openapi.schemas import MAX_INNER_TEXT
from unitools.openapi.security import find_key_names, names_a_key
from unitools.openapi.texts import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.openapi.parts import MediaSchema
    from unitools.openapi.schemas import SchemaReader
    from unitools.openapi.security import Security

MAX_HEADER_CHARS = 100
MAX_PART_HEADERS = 1_000  # of all parts of one form
_SHOWN = 5
_OWN, _KEY, _TWICE, _UNWRITTEN = (
    "are the form's own to say",
    "say who is asking",
    "are called as another one is",
    "are not written as texts or JSON are",
)


class PartHeaders:
    """Those of one form. Headers by which the document says who is asking are none."""

    def __init__(
        self, reader: SchemaReader, form: MediaSchema, security: Security, notes: list[DocumentDiagnostic]
    ) -> None:
        self._reader, self._form, self._notes = reader, form, notes
        self._keys = {name for place, name in find_key_names(reader.document) if place == "header"}
        self._keys |= {each["name"].lower() for each in security.credentials if each["in"] == "header"}
        self._room = MAX_PART_HEADERS

    def list_arguments(self, part: OperationArgument) -> Iterator[OperationArgument]:
        """Raises :class:`DocumentUnfit` of one that is needed and cannot be said."""
        encoding = self._form.encoding.get(part.name)
        said = encoding.get("headers") if isinstance(encoding, dict) else None
        if not isinstance(said, dict):
            return
        above = f"{self._form.pointer.removesuffix('/schema')}/encoding/{escape_token(part.name)}/headers"
        self._room -= len(said)
        if self._room < 0:
            raise DocumentUnfit(
                above, f"The parts of the form have more than {MAX_PART_HEADERS:,} headers.", "Leave the operation out."
            )
        left_out: dict[str, list[str]] = {}
        taken: set[str] = set()
        for name, each in said.items():
            if name.lower() == "content-type":  # the type of the part is no header here
                continue
            header, at = self._reader.document.resolve(each, f"{above}/{escape_token(name)}")
            header = header if isinstance(header, dict) else {}
            why = self._find_obstacle(name, header, taken)
            if why in (_KEY, _UNWRITTEN) and header.get("required") is True and part.is_always_a_part:
                raise DocumentUnfit(at, f"These headers of a part {why}: {name[:60]!a}.", "Leave the operation out.")
            if why:
                left_out.setdefault(why, []).append(name)
                continue
            if not is_token(name) or len(name) > MAX_HEADER_CHARS:
                raise DocumentUnfit(at, f"No header can be called {name[:60]!a}.", "Correct the name in the document.")
            taken.add(name.lower())
            yield self._read(part, name, header, at)
        for why, names in left_out.items():
            listed = ", ".join(ascii(each[:60]) for each in names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
            self._notes.append(DocumentDiagnostic(above, f"These headers of a part {why}, and are not sent: {listed}."))

    def _find_obstacle(self, name: str, header: dict[str, Any], taken: set[str]) -> str:
        small = name.lower()
        if is_reserved_header(name) or small.startswith("content-"):
            return _OWN
        if names_a_key(name) or small in self._keys:
            return _KEY
        if small in taken:
            return _TWICE
        return _UNWRITTEN if header.get("content") and _find_json(header) is None else ""

    def _read(self, part: OperationArgument, name: str, header: dict[str, Any], at: str) -> OperationArgument:
        said, place = header.get("schema", {}), f"{at}/schema"
        written: dict[str, Any] = {"name": part.name, "header": name}
        if (media := _find_json(header)) is not None:
            inner = header["content"][media]
            said, place = inner.get("schema", {}), f"{at}/content/{escape_token(media)}/schema"
            written["as_json"] = True
        elif header.get("explode") is True:
            written["explode"] = True
        if header.get("style", "simple") != "simple":
            self._notes.append(
                DocumentDiagnostic(
                    f"{at}/style", f"{str(header['style'])[:40]!a} is no style of header; simple is written."
                )
            )
        schema = self._reader.read(said, place)
        text, _ = clean_text(header.get("description"), MAX_INNER_TEXT)
        described = {"description": text or f"The header {name} of the part {part.name[:60]}."}
        is_required = header.get("required") is True and part.is_always_a_part
        return OperationArgument(
            "body",
            f"{part.name} {name}",
            described | (schema if isinstance(schema, dict) else {}),
            is_required,
            written,
        )


def _find_json(header: dict[str, Any]) -> str | None:
    """The media type by which its value is JSON."""
    content = header.get("content")
    found = content.items() if isinstance(content, dict) else ()
    return next((media for media, each in found if is_json(media) and isinstance(each, dict)), None)
