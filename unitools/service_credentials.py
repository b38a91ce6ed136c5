"""Service credentials: how a secret is written where a service wants it."""

from __future__ import annotations

import base64
import re

BEARER, BASIC, PLAIN = "bearer", "basic", "plain"
_FIELD_VALUE = re.compile(r"[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?")


def encode_credential(scheme: str, value: str) -> str:
    """As it is sent: ``Bearer …``, ``Basic …`` of user:password, or as it is."""
    if scheme == BEARER:
        return f"Bearer {value}"
    if scheme == BASIC:
        return "Basic " + base64.b64encode(value.encode()).decode()
    return value


def fits_header(value: str) -> bool:
    """Whether a header can hold it as it is."""
    return _FIELD_VALUE.fullmatch(value) is not None
