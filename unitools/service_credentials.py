"""Service credentials: how a secret is written where a service wants it."""

from __future__ import annotations

import base64

BEARER, BASIC, PLAIN = "bearer", "basic", "plain"


def encode_credential(scheme: str, value: str) -> str:
    """As it is sent: ``Bearer …``, ``Basic …`` of user:password, or as it is."""
    if scheme == BEARER:
        return f"Bearer {value}"
    if scheme == BASIC:
        return "Basic " + base64.b64encode(value.encode()).decode()
    return value
