"""File data: files that stand in a request, or of which only the address does. The hub takes neither, but pictures in base64."""

from __future__ import annotations

from typing import NoReturn

from llm.problems import ParameterUnsupported
from llm.served.openai_messages import NOT_FETCHED, NOT_INLINE


def refuse_file(pointer: str, kind: str, *, is_inline: bool) -> NoReturn:
    """Refuse it in a sentence that helps. ``kind``: what to use for it. ``is_inline``: it stands there itself, and not its address."""
    said = (NOT_INLINE if is_inline else NOT_FETCHED).format(kind=kind)
    raise ParameterUnsupported(f"At {pointer}: {said}", details={"findings": [{"pointer": pointer, "message": said}]})
