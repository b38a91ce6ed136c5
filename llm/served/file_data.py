"""File data: files that stand in a request, or of which only the address does. The hub takes neither, but pictures in base64."""

from __future__ import annotations

import base64
import binascii
from typing import NoReturn

from kernel.problems import SchemaInvalid, TooLarge
from llm.messages import MAX_FILE_BYTES
from llm.problems import ParameterUnsupported
from llm.served.openai_messages import NOT_FETCHED, NOT_INLINE

NOT_BASE64 = "This is not base64."


def refuse_file(data: str | None, pointer: str, kind: str = "image_ref") -> NoReturn:
    """Refuse it in a sentence that helps. ``data``: in base64; None where there is only an address. ``kind``: what to use for it."""
    if data is not None and len(data) > MAX_FILE_BYTES * 4 // 3 + 4:
        raise TooLarge(f"A picture or a file has at most {MAX_FILE_BYTES // 1024**2} MiB.")
    try:
        base64.b64decode(data or "", validate=True)
    except (binascii.Error, ValueError):
        raise SchemaInvalid.at(pointer, NOT_BASE64) from None
    said = (NOT_FETCHED if data is None else NOT_INLINE).format(kind=kind)
    raise ParameterUnsupported(f"At {pointer}: {said}", details={"findings": [{"pointer": pointer, "message": said}]})
