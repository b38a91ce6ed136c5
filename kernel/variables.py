"""Variables: what may be set in the environment, of which type, for what, and what it says now.

A setting is declared once (``toolhub/variables/``): the declaration gives its value, and is its row on the page of settings and
in ``dotenv-sample``. Values that cannot be meant are collected, so that all are said at once. Standard library only: what starts a
checkout reads them before anything is installed.
"""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
EVERY = "every process"
WEB, WORKER, UPKEEP, KEEPER, INIT, BOXD = "web", "worker", "upkeep", "keeper", "init", "boxd"
COMMANDS, MAKE = "commands", "make"  # other commands of manage.py; what sets up a checkout

PREFIX = "TOOLHUB_"
OF_TESTS = "TOOLHUB_TEST_"
ALIKE = 0.75  # of a name and the one that was probably meant


class VariableNotes(TypedDict, total=False):
    """What a declaration says beside name, type and default."""

    about: str
    roles: tuple[str, ...]
    unit: str
    shown: str  # the default in words, where it depends on another setting
    example: str  # in dotenv-sample, where the default says too little
    secret: bool
    empty: str  # what the empty text means; otherwise it is as good as not set


@dataclass(frozen=True, slots=True)
class Variable:
    """One setting, as its row says it. Nothing in here depends on the environment."""

    name: str
    group: str
    allowed: str
    default: str
    about: str
    roles: tuple[str, ...] = (EVERY,)
    unit: str = ""
    example: str = ""
    secret: bool = False
    empty: str = ""
    elsewhere: bool = False  # read by something else than the hub's settings


@dataclass(slots=True)
class Variables:
    """The declared settings, their values read from ``environ``, and what is wrong with those."""

    environ: Mapping[str, str]
    rows: dict[str, Variable] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    _group: str = ""

    def group(self, title: str) -> None:
        """The declarations from here on belong together."""
        self._group = title

    def value(
        self, name: str, default: str, read: Callable[[str], T], allowed: str, **told: Unpack[VariableNotes]
    ) -> T:
        """The general declaration; ``read`` raises ``ValueError`` for what cannot be meant."""
        self.rows[name] = Variable(
            name=name,
            group=self._group,
            allowed=allowed,
            default=told.get("shown", default),
            about=told["about"],
            roles=told.get("roles", (EVERY,)),
            unit=told.get("unit", ""),
            example=told.get("example", default),
            secret=told.get("secret", False),
            empty=told.get("empty", ""),
        )
        text = self.environ.get(name)
        if text is None or (text == "" and "empty" not in told):
            return read(default)
        try:
            return read(text)
        except ValueError as error:
            found = "" if told.get("secret") else f", not {text!r}"
            why = f" ({error})" if isinstance(error, Unfit) else ""
            self.mistakes.append(f"{name} must be {allowed}{found}{why}.")
            return read(default)

    def text(self, name: str, default: str = "", *, allowed: str = "text", **told: Unpack[VariableNotes]) -> str:
        return self.value(name, default, str, allowed, **told)

    def number(
        self, name: str, default: int, *, least: int = 0, most: int | None = None, **told: Unpack[VariableNotes]
    ) -> int:
        allowed = f"a whole number {f'from {least} to {most}' if most is not None else f'of at least {least}'}"

        def read(text: str) -> int:
            number = int(text)
            if number < least or (most is not None and number > most):
                raise ValueError
            return number

        return self.value(name, str(default), read, allowed, **told)

    def flag(self, name: str, *, default: bool, **told: Unpack[VariableNotes]) -> bool:
        def read(text: str) -> bool:
            return ("0", "1").index(text) == 1

        return self.value(name, "1" if default else "0", read, "0 or 1", **told)

    def choice(self, name: str, default: str, *, of: tuple[str, ...], **told: Unpack[VariableNotes]) -> str:
        def read(text: str) -> str:
            if text and text not in of:
                raise ValueError
            return text

        return self.value(name, default, read, f"one of {', '.join(of)}", **told)

    def listed(
        self, name: str, default: str = "", *, of: tuple[str, ...] = (), **told: Unpack[VariableNotes]
    ) -> list[str]:
        def read(text: str) -> list[str]:
            found = [each.strip() for each in text.split(",") if each.strip()]
            if of and ((text and not found) or not set(found) <= set(of)):
                raise ValueError
            return found

        allowed = f"one or more of {', '.join(of)}, separated by commas" if of else "texts separated by commas"
        return self.value(name, default, read, allowed, **told)

    def words(self, name: str, **told: Unpack[VariableNotes]) -> list[str]:
        return self.value(name, "", str.split, "texts separated by spaces", **told)

    def path(self, name: str, default: Path, **told: Unpack[VariableNotes]) -> Path:
        return self.value(name, str(default), Path, "a path", **told)

    def paths(self, name: str, default: Path, **told: Unpack[VariableNotes]) -> list[Path]:
        def read(text: str) -> list[Path]:
            return [Path(part) for part in text.split(os.pathsep) if part]

        return self.value(name, str(default), read, f"paths separated by {os.pathsep!r}", **told)

    def url(self, name: str, default: str = "", *, schemes: tuple[str, ...], **told: Unpack[VariableNotes]) -> str:
        def read(text: str) -> str:
            parts = urlsplit(text)
            if text and (parts.scheme not in schemes or not (parts.netloc or parts.path.startswith("/"))):
                raise ValueError
            return text

        allowed = f"an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"
        return self.value(name, default, read, allowed, **told)

    def networks(self, name: str, **told: Unpack[VariableNotes]) -> list[str]:
        return self.value(name, "", read_networks, "networks separated by commas, as 10.20.0.0/16", **told)

    def elsewhere(self, name: str, *, about: str, by: str, example: str = "") -> None:
        """A name that something beside the hub's settings reads: ``by`` says what."""
        self.rows[name] = Variable(name, self._group, "text", "", about, (by,), example=example, elsewhere=True)

    def unknown(self) -> list[str]:
        """A sentence for each name of the environment that looks like a setting and is none."""
        names = {name for name in self.environ if name.startswith(PREFIX) and not name.startswith(OF_TESTS)}
        words, found = [name.removeprefix(PREFIX) for name in self.rows if name.startswith(PREFIX)], []
        for name in sorted(names - set(self.rows)):
            meant = difflib.get_close_matches(name.removeprefix(PREFIX), words, n=1, cutoff=ALIKE)
            hint = (
                f"Did you mean {PREFIX}{meant[0]}?"
                if meant
                else "docs/reference/settings.md names those that there are."
            )
            found.append(f"There is no setting {name}, so it has no effect. {hint}")
        return found


class Unfit(ValueError):
    """Says more than what is allowed."""


def read_sandbox_hosts(text: str) -> list[str]:
    """Addresses of sandbox hosts, separated by commas."""
    found = [each.strip() for each in text.split(",") if each.strip()]
    for each in found:
        url = urlsplit(each)
        local = url.scheme == "unix" and url.path and not url.netloc
        if not local and not (url.scheme == "tls" and url.hostname and url.port and not url.path):
            raise Unfit(f"{each} is neither of both")
    return found


def read_networks(text: str) -> list[str]:
    """Ranges of addresses, separated by commas."""
    found = [each.strip() for each in text.split(",") if each.strip()]
    for each in found:
        try:
            ip_network(each)
        except ValueError as error:
            raise Unfit(error) from error
    return found


def read_runtimes(text: str) -> dict[str, str]:
    """``{"default": name, "untrusted": name}``, either of which may be left out."""
    names = json.loads(text)
    if not isinstance(names, dict) or not set(names) <= {"default", "untrusted"}:
        raise ValueError
    if not all(isinstance(name, str) and name.strip() for name in names.values()):
        raise ValueError
    return dict(names)


def read_address(text: str) -> str:
    """Host and port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError
    return text


def read_archive_url(text: str) -> str:
    """A bucket with a prefix, or a folder."""
    parts = urlsplit(text)
    good = {"s3": bool(parts.hostname), "file": not parts.netloc and parts.path.startswith("/")}
    if text and (not good.get(parts.scheme) or parts.query or parts.fragment or parts.username):
        raise ValueError
    return text


def read_time_zone(text: str) -> str:
    """Of the IANA database."""
    try:
        ZoneInfo(text)
    except (OSError, ZoneInfoNotFoundError) as error:
        raise ValueError from error
    return text


def read_mail_address(text: str) -> str:
    """Of a mail server, with its way of encrypting as the scheme."""
    parts = urlsplit(text)
    if text and (parts.scheme not in ("smtp", "smtps", "smtp+plain") or not parts.hostname):
        raise ValueError
    return text
