"""Server secrets: what a server of others finds in its environment by name, of which each tenant keeps its own value in the hub."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def add_secrets(environment: Sequence[dict[str, str]], secrets: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The environment with these entries: the value goes of what is a secret by now; what else a person has put there stays."""
    named = {each["name"] for each in secrets}
    kept = [each for each in environment if not ("value" in each and each["name"] in named)]
    there = {each["name"] for each in kept}
    return kept + [each for each in secrets if each["name"] not in there]


def describe_secrets(start: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest has of those that the server is started with."""
    names = [each["secret"] for each in start.get("environment", ()) if "secret" in each]
    return {"secrets": [describe_secret(each) for each in names]} if names else {}


def describe_secret(name: str) -> dict[str, Any]:
    return {"name": name, "description": "The server reads it from its environment."}
