"""Server secrets: what a server of others finds in its environment by name, of which each tenant keeps its own value in the hub."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.source_scans import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_IN_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_IN_ANY_LETTERS = re.compile(r"_*[A-Za-z][A-Za-z0-9_]*")
_MAX_NAME = 64


def fits_secret(name: str) -> bool:
    """Whether a variable of this name can be given a secret. Small letters only in what is called like one: what else is typed in
    them may be the secret itself."""
    is_called_so = len(name) <= _MAX_NAME and _IN_ANY_LETTERS.fullmatch(name) is not None and is_secret_name(name)
    return is_called_so or _IN_CAPITALS.fullmatch(name) is not None


def build_secret_entry(name: str) -> dict[str, str]:
    """Of the server's environment. Secrets are called in capitals, whatever the variable is."""
    return {"name": name, "secret": name.lstrip("_").upper()}


def advise_secret(text: str) -> str:
    """What to say of a text that was typed for a secret's name. Of it only a name that stands before a value is said again: all else
    may be the value."""
    name, sign, _ = text.partition("=")
    return f" Say --secret {name}." if sign and is_secret_name(name) and fits_secret(name) else ""


def add_secrets(environment: Sequence[dict[str, str]], secrets: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The environment with these entries: the value goes of what is a secret by now; what else a person has put there stays."""
    named = {each["name"] for each in secrets}
    kept = [each for each in environment if not ("value" in each and each["name"] in named)]
    there = {each["name"] for each in kept}
    return kept + [each for each in secrets if each["name"] not in there]


def describe_secrets(start: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest has of those that the server is started with."""
    names = dict.fromkeys(each["secret"] for each in start.get("environment", ()) if "secret" in each)
    return {"secrets": [describe_secret(each) for each in names]} if names else {}


def describe_secret(name: str) -> dict[str, Any]:
    return {"name": name, "description": "The server reads it from its environment."}
