"""OpenAPI servers: the one host that an operation is frozen to.

A document may name several, none, one in plain http, or one whose host is made of variables. Which of them is meant is a person's to
say: exactly one comes out, by https and by its name, and a variable is filled in by one of its own values only.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unitools.checks.operations import find_server_problem
from unitools.manifest import manifest_schema
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.requests import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.openapi.documents import OpenApiDocument, OperationEntry

MAX_ADDRESSES = 1_000  # that the servers of an operation make with their variables
MAX_VALUES = 10_000  # of all their variables
MAX_VARIABLES = 20  # of one server
MAX_URL_CHARS = 2_000  # with braces, or filled in: one that is frozen has far less
_IN_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_IN_PATH = re.compile(r"[A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*")
_SHOWN = 6
_NAMED = "--server (in the console: Server)"


def normalize_server(url: str) -> str:
    """As a manifest has it: the host in small letters, no port that is https's own, no slash at the end. ``ValueError``: why not."""
    if len(url) > MAX_URL_CHARS:  # what urlsplit has seen, the process keeps
        raise ValueError(f"it has more than {MAX_URL_CHARS:,} characters")
    parts = urlsplit(url.strip())
    if parts.scheme.lower() != "https":
        raise ValueError("it is not https")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("it holds a user, a query or a fragment")
    host, port = (parts.hostname or "").lower(), parts.port
    found = f"https://{host}{f':{port}' if port not in (None, 443) else ''}{parts.path.rstrip('/')}"
    pattern = manifest_schema()["properties"]["implementation"]["properties"]["operation"]["properties"]["server"][
        "pattern"
    ]
    if not re.fullmatch(pattern, found) or len(found) > 400:
        raise ValueError("it is no host with a plain path")
    if problem := find_server_problem(found):
        raise ValueError(problem.rstrip("."))
    return found


def choose_server(document: OpenApiDocument, entry: OperationEntry, named: Sequence[str]) -> str:
    """The operation's server. ``named``: what the person has said; one that is none of the document's own is taken only where the
    document names none by https. Raises :class:`DocumentUnfit`.
    """
    servers, pointer = _servers(document, entry)
    wanted = []
    for each in named:
        try:
            wanted.append(normalize_server(each))
        except ValueError as error:
            raise DocumentUnfit(
                pointer, f"{each[:200]} is no server: {error}.", "Name one like https://api.example.com/v1."
            ) from error
    usable: dict[str, bool] = {}  # URL → whether it is the document's without a choice
    problems = []
    templates = _read_templates(servers, pointer)
    if is_narrowed := sum(each.size for each in templates) > MAX_ADDRESSES:
        templates = [each.narrow(wanted) for each in templates]
        if not wanted or sum(each.size for each in templates) > MAX_ADDRESSES:
            raise DocumentUnfit(
                pointer,
                f"The servers make more than {MAX_ADDRESSES:,} addresses.",
                f"Name exactly one of them with {_NAMED}, or leave the one that you mean in the document.",
            )
    for template in templates:
        for url in template.fill():
            try:
                usable.setdefault(normalize_server(url), not template.texts)
            except ValueError as error:
                problems.append(f"{url[:100]} ({error})")
    if is_narrowed and not usable.keys() & set(wanted):
        raise DocumentUnfit(
            pointer,
            "None of the servers that you name is one of the operation's.",
            f"Name one of its own with {_NAMED}.",
        )
    if usable:
        chosen = [each for each in wanted if each in usable]
        # What a person names is meant for the document as a whole; an operation with a server of its own keeps it.
        if (
            not chosen
            and len(usable) == 1
            and next(iter(usable.values()))
            and (not wanted or pointer not in ("/servers", "/host"))
        ):
            chosen = list(usable)
        if len(chosen) == 1:
            return chosen[0]
        listed = ", ".join(list(usable)[:_SHOWN]) + (" …" if len(usable) > _SHOWN else "")
        what = (
            "None of the servers that you name is one of the operation's"
            if wanted and not chosen
            else "The operation has several servers"
        )
        raise DocumentUnfit(pointer, f"{what}: {listed}.", f"Name exactly one of them with {_NAMED}.")
    if len(wanted) == 1:
        return _with_relative_path(wanted[0], servers)
    why = f"no server by https ({'; '.join(problems[:3])})" if problems else "no server"
    raise DocumentUnfit(pointer, f"The document names {why}.", f"Name the one that you mean, by https, with {_NAMED}.")


def _with_relative_path(url: str, servers: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """A document whose only server is a path says what stands before all of its paths; a server that is named with a path has it."""
    paths = {str(said.get("url")).rstrip("/") for _, said in servers}
    only = next(iter(paths)) if len(paths) == 1 else ""
    is_plain = only.startswith("/") and not only.startswith("//") and not PLACEHOLDER.search(only)
    if is_plain and not urlsplit(url).path:
        try:
            return normalize_server(url + only)
        except ValueError:
            return url
    return url


def _servers(document: OpenApiDocument, entry: OperationEntry) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    if document.revision == "2.0":
        root = document.root
        host, base = root.get("host"), str(root.get("basePath") or "")
        schemes = entry.said.get("schemes") or root.get("schemes") or ["https"]
        if not isinstance(host, str):
            return ([("/basePath", {"url": base})] if base else []), "/host"
        said = [str(each) for each in schemes] if isinstance(schemes, list) else ["https"]
        said = ["https"] if "https" in said else said  # one host by two schemes is no choice
        return [("/host", {"url": f"{each}://{host}{base}"}) for each in said], "/host"
    above = entry.pointer.rpartition("/")[0]
    for owner, at in ((entry.said, entry.pointer), (entry.shared, above), (document.root, "")):
        given = owner.get("servers")
        if isinstance(given, list) and given:
            return [
                (f"{at}/servers/{index}", each) for index, each in enumerate(given) if isinstance(each, dict)
            ], f"{at}/servers"
    return [], "/servers"


@dataclass(frozen=True, slots=True)
class _Template:
    """A server's URL with its variables, each with the texts that it may become."""

    url: str
    texts: dict[str, list[str]]

    @property
    def size(self) -> int:
        return math.prod(map(len, self.texts.values()))

    def narrow(self, wanted: Sequence[str]) -> _Template:
        """With the texts alone that can stand in one of these. A port that is https's own stands in none of them."""
        texts = {
            name: [each for each in values if each == "443" or any(each.lower() in url.lower() for url in wanted)]
            for name, values in self.texts.items()
        }
        return _Template(self.url, texts)

    def fill(self) -> Iterator[str]:
        for chosen in itertools.product(*self.texts.values()):
            filled = self.url
            for name, value in zip(self.texts, chosen, strict=True):
                filled = filled.replace(f"{{{name}}}", value)
            yield filled


def _read_templates(servers: Sequence[tuple[str, dict[str, Any]]], pointer: str) -> list[_Template]:
    if len(servers) > MAX_ADDRESSES:
        raise DocumentUnfit(
            pointer,
            f"There are {len(servers):,} servers; most are {MAX_ADDRESSES:,}.",
            "Leave the one that you mean in the document.",
        )
    room = [MAX_VALUES]
    return [_read_template(said, at, room) for at, said in servers]


def _read_template(said: dict[str, Any], at: str, room: list[int]) -> _Template:
    """``room``: how many more values there may be. Raises :class:`DocumentUnfit`."""
    url = str(said.get("url", ""))
    if len(url) > MAX_URL_CHARS:
        raise DocumentUnfit(
            at, f"The server's address has more than {MAX_URL_CHARS:,} characters.", "Correct the document."
        )
    names = list(dict.fromkeys(PLACEHOLDER.findall(url)))
    if len(names) > MAX_VARIABLES:
        raise DocumentUnfit(
            at, f"The server has {len(names)} variables; most are {MAX_VARIABLES}.", "Correct the document."
        )
    variables = said.get("variables")
    variables = variables if isinstance(variables, dict) else {}
    found: dict[str, list[str]] = {}
    for name in names:
        variable = variables.get(name)
        variable = variable if isinstance(variable, dict) else {}
        listed = variable.get("enum")
        values = listed if isinstance(listed, list) else [variable.get("default")]
        room[0] -= len(values)
        if room[0] < 0:
            raise DocumentUnfit(
                at,
                f"The variables of the servers have more than {MAX_VALUES:,} values.",
                "Leave those that you mean in the document.",
            )
        texts = [str(each) for each in values if isinstance(each, str | int) and not isinstance(each, bool)]
        in_path = "/" in url.split("://", 1)[-1].partition(f"{{{name}}}")[0]
        fits = _IN_PATH if in_path else _IN_HOST
        for text in texts:
            if len(text) > MAX_URL_CHARS or not fits.fullmatch(text):
                raise DocumentUnfit(
                    f"{at}/variables/{name}",
                    f"The server's variable {name[:40]!a} may become {text[:60]!a}, which leaves its place in the address.",
                    "Correct the document.",
                )
        found[name] = texts
    return _Template(url, found)
