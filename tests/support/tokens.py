"""Tokens: how do tests show tokens to the hub, and make ones that nobody signed?"""

from __future__ import annotations

import base64
import json
from typing import Any

from django.test import Client


def ask(token: str, path: str = "/api/v1/tools", **more: str) -> Any:
    return Client().get(path, headers={"Authorization": f"Bearer {token}"} | more)


def encoded(header: dict[str, Any], claims: dict[str, Any], signature: str = "") -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, claims)]
    return ".".join([*parts, signature])
