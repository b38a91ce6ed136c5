"""OpenAPI files: what of a document is a file, and how an agent names one that is sent: by an id that the hub knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.texts import clean_text

if TYPE_CHECKING:
    from unitools.openapi.documents import OpenApiDocument

MAX_FILES = 20  # in one argument
FILE_ID = "^(art|fil)_[0-7][0123456789abcdefghjkmnpqrstvwxyz]{25}$"
_NAMED = "The id of a file: of an artifact of one of your calls (art_…), or of a file that the hub keeps (fil_…)."
_MAX_TEXT = 200
# What a result has in place of a body that is a file; the hub says the rest of the artifact once it is kept.
FILE_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["artifact"],
    "properties": {
        "artifact": {"type": "string"},
        "media_type": {"type": "string"},
        "bytes": {"type": "integer"},
        "digest": {"type": "string"},
    },
}
_OF_FILES = re.compile(
    r"(?:image|audio|video|font|model)/.+"
    r"|application/(?!.*(?:json|xml|yaml)$)(?:octet-stream|binary|pdf|rtf|msword|zip|gzip|x-gzip|x-tar|x-zip-compressed|x-7z-compressed|vnd\..+)"
)
_TEXTS = re.compile(r"text/|application/(?:.+\+)?(?:json|xml|yaml)")


def is_file_type(media: str) -> bool:
    """Whether what is called so is read by nobody as text."""
    return _OF_FILES.fullmatch(media) is not None


def is_file(document: OpenApiDocument, schema: Any, pointer: str) -> bool:
    """Whether a schema stands for the bytes of a file, in the words of any revision."""
    try:
        said, _ = document.resolve(schema, pointer)
    except DocumentUnfit:
        return False  # who reads the schema says what is wrong with it
    if not isinstance(said, dict):
        return False
    kinds = said.get("type", "string")
    if kinds == "file":
        return True
    if not set(kinds if isinstance(kinds, list) else [kinds]) <= {"string", "null"}:
        return False
    if said.get("format") == "binary":
        return True
    media = said.get("contentMediaType")  # of 3.1; with an encoding it is a text
    return isinstance(media, str) and "contentEncoding" not in said and not _TEXTS.match(media)


def is_list_of_files(document: OpenApiDocument, schema: Any, pointer: str) -> bool:
    try:
        said, at = document.resolve(schema, pointer)
    except DocumentUnfit:
        return False
    return (
        isinstance(said, dict)
        and said.get("type") == "array"
        and "items" in said
        and is_file(document, said["items"], f"{at}/items")
    )


def describe_file(document: OpenApiDocument, schema: Any, *, is_many: bool = False) -> dict[str, Any]:
    """The schema of the argument that names it, or several."""
    said, _ = document.resolve(schema, "")
    texts = [clean_text(each.get("description"), _MAX_TEXT)[0] for each in (schema, said) if isinstance(each, dict)]
    own = next(filter(None, texts), "")
    found: dict[str, Any] = {"description": f"{own} {_NAMED}".strip()}
    one = {"type": "string", "pattern": FILE_ID}
    return found | ({"type": "array", "items": one, "maxItems": MAX_FILES} if is_many else one)
