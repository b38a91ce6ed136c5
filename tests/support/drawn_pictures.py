"""Drawn pictures: real ones, as programs write them, and the data URLs in which they stand in requests."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image


def draw(kind: str = "PNG", width: int = 33, height: int = 21, **more: Any) -> bytes:
    into = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(into, kind, **more)
    return into.getvalue()


def to_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def to_data_url(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{to_base64(content)}"
