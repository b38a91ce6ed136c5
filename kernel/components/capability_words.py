"""Capability words: what a run may reach, as people read it. The texts of unitools.capabilities, which evidence keeps, stay codes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from kernel.components.labels import MARKS
from kernel.components.limits import WORDS, limit_text
from unitools.capabilities import Capabilities
from unitools.capabilities.wire import TMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.components.labels import Text

DOMAIN: dict[str, Text] = {
    "fs": gettext_lazy("Files"),
    "net": gettext_lazy("Hosts of the network"),
    "cidr": gettext_lazy("Addresses of the network"),
    "browser": gettext_lazy("A browser"),
    "proc": gettext_lazy("Programs"),
    "tmp": gettext_lazy("Temporary files"),
}
FILE_ACTION: dict[str, Text] = {
    "create": pgettext_lazy("action on files", "create"),
    "delete": pgettext_lazy("action on files", "delete"),
    "exec": pgettext_lazy("action on files", "run"),
    "list": pgettext_lazy("action on files", "list"),
    "read": pgettext_lazy("action on files", "read"),
    "write": pgettext_lazy("action on files", "write"),
}
BROWSER_ACTION: dict[str, Text] = {
    "clipboard": gettext_lazy("use the clipboard"),
    "download": gettext_lazy("download files"),
    "navigate": gettext_lazy("open pages"),
    "script": gettext_lazy("run scripts"),
    "upload": gettext_lazy("upload files"),
}
ANY, EVERY_PORT = "*", "1-65535"
USUAL_PORTS = {"https": "443", "http": "80"}
NETWORK = re.compile(r"(?P<scheme>[a-z]+)://(?P<place>.+):(?P<ports>[0-9,-]+)(?: (?P<methods>[A-Z,]+))?")


class CapabilityLine(NamedTuple):
    """One thing that a tool may reach. ``code``: as policies and evidence name it."""

    text: str
    code: str


def capability_text(name: str) -> str:
    """One of the names of capabilities in words; what is not known here is shown as it is."""
    part, _, value = name.partition(":")
    if part in WORDS and value.isdecimal():
        return limit_text(part, int(value))
    match part:
        case "fs":
            return _file(value) or name
        case "net" | "cidr" if found := NETWORK.fullmatch(value):
            return _network(**found.groupdict())
        case "browser":
            return _browser(value) or name
        case "proc" if value:
            return _program(value)
        case "secret" if value:
            return _secret(value)
        case "tmp" if not value:
            return gettext("temporary files of any size")
        case _:
            return name


def capability_texts(names: Iterable[str]) -> list[str]:
    """Several of them for a sentence, what may be done with the same files said once."""
    found: dict[str, list[str]] = {}
    for name in names:
        part, action, path = [*name.split(":", 2), "", ""][:3]
        is_known = part == "fs" and action in FILE_ACTION
        found.setdefault(path if is_known else name, []).append(action if is_known else "")
    return [_files(actions, place) if all(actions) else capability_text(place) for place, actions in found.items()]


def kept_text(names: str) -> str:
    """What is kept of a capability, as explanations of a decision join it."""
    return str(MARKS["comma"]).join(capability_texts(names.split(", ")))


def capability_lines(document: dict[str, Any]) -> list[CapabilityLine]:
    """What a manifest or a grant lets a tool reach, a line each, with what its bounds forbid: no bound would be none of that."""
    capabilities = Capabilities.from_json(document)
    names = capabilities.names()
    # Where nothing is said of scratch space there is none, as of files; only a bound of something else has to be named.
    names += [f"{name}:0" for name, most in sorted(capabilities.ceilings.items()) if not most and name != TMP]
    if TMP not in capabilities.ceilings:
        names.append("tmp")
    return [CapabilityLine(capability_text(name), name) for name in names]


def _file(value: str) -> str:
    action, _, path = value.partition(":")
    return _files([action], path) if action in FILE_ACTION and path else ""


def _files(actions: list[str], path: str) -> str:
    alone = path.removesuffix(" (file)")
    said = {"action": str(MARKS["comma"]).join(str(FILE_ACTION[each]) for each in actions), "path": alone}
    return (
        gettext("%(action)s files below %(path)s") if alone == path else gettext("%(action)s the file %(path)s")
    ) % said


def _network(*, scheme: str, place: str, ports: str, methods: str | None) -> str:
    said = {"place": place, "scheme": scheme.upper()}
    reach = (
        gettext("reach any host by %(scheme)s") if place == ANY else gettext("reach %(place)s by %(scheme)s")
    ) % said
    if ports == EVERY_PORT:
        text = gettext("%(reach)s on any port") % {"reach": reach}
    elif ports == USUAL_PORTS.get(scheme):
        text = reach
    else:
        text = gettext("%(reach)s on port %(ports)s") % {"reach": reach, "ports": ports}
    return text if methods is None else f"{text} ({methods.replace(',', ', ')})"


def _browser(value: str) -> str:
    if not value:
        return gettext("open any page in a browser")
    action, _, place = value.partition(":")
    if action not in BROWSER_ACTION or not place:
        return ""
    said = {"action": BROWSER_ACTION[action], "place": place}
    return (
        gettext("%(action)s in a browser at any host")
        if place == ANY
        else gettext("%(action)s in a browser at %(place)s")
    ) % said


def _program(value: str) -> str:
    return gettext("start any program") if value == ANY else gettext("start the program %(path)s") % {"path": value}


def _secret(value: str) -> str:
    return gettext("use any secret") if value == ANY else gettext("use the secret %(name)s") % {"name": value}
