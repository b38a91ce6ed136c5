"""Wire form: how capabilities are written down, as JSON, and as short texts for people.

The JSON form is that of ``capabilities`` in a manifest. Bounds may also say ``*`` for all hosts, programs or secrets, name single
browser actions, and set ceilings under ``limits``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.capabilities.nodes import parse_host, parse_path, parse_range, show_host, show_path, show_range
from unitools.capabilities.values import METHODS, PORTS, PROTOCOLS, SCHEMES, Actions, NetworkAccess

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.capabilities.algebra import Capabilities
    from unitools.capabilities.nodes import HostNode, PathNode, RangeNode
    from unitools.capabilities.values import Spans

ANY = "*"
FILE_ACTIONS = ("create", "delete", "exec", "list", "read", "write")
BROWSER_ACTIONS = ("clipboard", "download", "navigate", "script", "upload")
DOMAINS = ("fs", "net", "cidr", "browser", "proc", "secrets")
TMP = "tmp_bytes"
MAX_TMP = 256 * 1024 * 1024
CEILINGS = (
    "timeout_ms",
    "cpu_ms",
    "memory_bytes",
    "max_bytes_in",
    "max_bytes_out",
    "processes",
    "depth",
    "files",
    "artifacts",
    "artifact_bytes",
    TMP,
)
_PARTS = frozenset({*DOMAINS, "tmp", "limits"})
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:-]{0,119}")
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
MAX_RULES = 1000
MAX_CEILING = 2**53 - 1  # what JSON numbers hold exactly


@dataclass(slots=True)
class ParsedCapabilities:
    """What a document says, not yet in normal form."""

    fs: list[tuple[PathNode, Actions]] = field(default_factory=list)
    net: list[tuple[HostNode, NetworkAccess]] = field(default_factory=list)
    cidr: list[tuple[RangeNode, NetworkAccess]] = field(default_factory=list)
    browser: list[tuple[HostNode, Actions]] = field(default_factory=list)
    proc: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    ceilings: dict[str, int] = field(default_factory=dict)


def _list(data: dict[str, Any], part: str) -> list[Any]:
    value = data.get(part, [])
    if not isinstance(value, list) or len(value) > MAX_RULES:
        raise ValueError(f"{part} is not a list of at most {MAX_RULES:,} entries.")
    return value


def _entry(value: Any, part: str, needed: str, known: Iterable[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or needed not in value:
        raise ValueError(f"An entry of {part} is an object with `{needed}`, not {str(value)[:80]!r}.")
    strange = sorted(set(value) - {needed, *known})
    if strange:
        raise ValueError(f"An entry of {part} has no `{strange[0]}`.")
    return value


def _words(value: Any, what: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word in known for word in value):
        raise ValueError(f"{what} is not a list of {', '.join(known)}.")
    return tuple(value)


def _port(value: Any) -> tuple[int, int]:
    """``443``, ``"443"`` or ``"8000-8100"``."""
    if isinstance(value, str) and (match := _PORTS.fullmatch(value)):
        low, high = int(match[1]), int(match[2] or match[1])
    elif isinstance(value, int) and not isinstance(value, bool):
        low = high = value
    else:
        raise ValueError(f'{value!r} is not a port or a range of ports, such as 443 or "8000-8100".')
    if not PORTS[0] <= low <= high <= PORTS[1]:
        raise ValueError(f"{value!r} is not a range of ports within 1-65535.")
    return low, high


def _ports(value: Any) -> list[tuple[int, int]]:
    if not isinstance(value, list) or not value or len(value) > MAX_RULES:
        raise ValueError(f"`ports` is a list of 1 to {MAX_RULES:,}.")
    return [_port(port) for port in value]


def _scheme(entry: dict[str, Any], known: tuple[str, ...], usual: str) -> str:
    scheme = entry.get("scheme", usual)
    if not isinstance(scheme, str) or scheme not in known:
        raise ValueError(f"{str(scheme)[:80]!r} is not one of the schemes {', '.join(known)}.")
    return scheme


def _host(value: Any) -> tuple[HostNode, NetworkAccess]:
    entry = _entry(value, "net", "host", ["scheme", "port", "ports", "methods"])
    if "port" in entry and "ports" in entry:
        raise ValueError("An entry of net has either `port` or `ports`.")
    ports = _ports(entry.get("ports", [entry.get("port", 443)]))
    methods = _words(entry["methods"], "`methods`", METHODS) if "methods" in entry else METHODS
    return parse_host(entry["host"]), NetworkAccess.over([_scheme(entry, SCHEMES, "https")], methods, ports)


def _range(value: Any) -> tuple[RangeNode, NetworkAccess]:
    entry = _entry(value, "cidr", "cidr", ["scheme", "ports"])
    return parse_range(entry["cidr"]), NetworkAccess.over(
        [_scheme(entry, PROTOCOLS, "tcp")], [""], _ports(entry.get("ports"))
    )


def _count(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_CEILING:
        raise ValueError(f"{name} is not a whole number from 0 to {MAX_CEILING:,}.")
    return value


def _programs(values: list[Any]) -> list[str]:
    return [ANY if value == ANY else show_path(parse_path(value, tree=False)) for value in values]


def _secret(value: Any) -> str:
    if value != ANY and not (isinstance(value, str) and _SECRET.fullmatch(value)):
        raise ValueError(f"{str(value)[:80]!r} is not the name of a secret.")
    return str(value)


def _browser(value: Any) -> list[tuple[HostNode, Actions]]:
    if value is None or isinstance(value, bool):
        return [(((), True), Actions(BROWSER_ACTIONS))] if value else []
    if not isinstance(value, list) or len(value) > MAX_RULES:
        raise ValueError("browser is true, false or a list of hosts with actions.")
    found = []
    for each in value:
        entry = _entry(each, "browser", "host", ["actions"])
        actions = _words(entry.get("actions", list(BROWSER_ACTIONS)), "`actions` of browser", BROWSER_ACTIONS)
        found.append((parse_host(entry["host"]), Actions(actions)))
    return found


def _file(value: Any) -> tuple[PathNode, Actions]:
    entry = _entry(value, "fs", "path", ["actions", "kind"])
    kind = entry.get("kind", "tree")
    if kind not in ("tree", "file"):
        raise ValueError(f"{str(kind)[:80]!r} is neither tree nor file.")
    actions = _words(entry.get("actions"), "`actions` of fs", FILE_ACTIONS)
    return parse_path(entry["path"], tree=kind == "tree"), Actions(actions)


def read_capabilities(data: Any) -> ParsedCapabilities:
    """The parts of a document; ``ValueError`` with a sentence when it is not one."""
    if not isinstance(data, dict) or not _PARTS.issuperset(data):
        strange = min(set(data) - _PARTS) if isinstance(data, dict) else ""
        raise ValueError(f"There is no capability `{strange[:80]}`." if strange else "Capabilities are a JSON object.")
    result = ParsedCapabilities(
        fs=[_file(each) for each in _list(data, "fs")],
        net=[_host(each) for each in _list(data, "net")],
        cidr=[_range(each) for each in _list(data, "cidr")],
        browser=_browser(data.get("browser")),
        proc=_programs(_list(data, "proc")),
        secrets=[_secret(each) for each in _list(data, "secrets")],
    )
    limits = data.get("limits", {})
    if not isinstance(limits, dict) or set(limits) - set(CEILINGS):
        raise ValueError(f"limits is not an object of {', '.join(CEILINGS)}.")
    result.ceilings = {name: _count(value, name) for name, value in limits.items()}
    if data.get("tmp", 0) is not None:  # null: no bound, which only TOP has
        most = _count(data.get("tmp", 0), "tmp")
        result.ceilings[TMP] = min(most, result.ceilings.get(TMP, most))
    return result


def _ports_text(ports: Spans) -> list[str]:
    return [str(low) if low == high else f"{low}-{high}" for low, high in ports]


def write_capabilities(value: Capabilities) -> dict[str, Any]:
    """The canonical document; :func:`read_capabilities` of it gives the same value back. Every part is named, also when it
    is empty.
    """
    patterns = sorted((show_host(node), sorted(actions.words)) for node, actions in value.browser.own())
    hosts: list[dict[str, Any]] = [{"host": host, "actions": actions} for host, actions in patterns]
    return {
        "fs": sorted(
            (
                {"path": show_path(node), "kind": "tree" if node[1] else "file", "actions": sorted(actions.words)}
                for node, actions in value.fs.own()
            ),
            key=lambda each: (each["path"], each["kind"]),
        ),
        "net": [
            {"host": host, "scheme": scheme, "ports": _ports_text(ports), "methods": list(methods)}
            for host, reach in sorted((show_host(node), reach.groups()) for node, reach in value.net.own())
            for scheme, methods, ports in reach
        ],
        "cidr": [
            {"cidr": show_range(node), "scheme": scheme, "ports": _ports_text(ports)}
            for node, reach in sorted(value.cidr.own(), key=lambda rule: rule[0])
            for scheme, _, ports in reach.groups()
        ],
        "browser": bool(hosts) if not hosts or patterns == [(ANY, list(BROWSER_ACTIONS))] else hosts,
        "proc": sorted(value.proc),
        "secrets": sorted(value.secrets),
        "tmp": value.ceilings.get(TMP),
        "limits": {name: most for name, most in sorted(value.ceilings.items()) if name != TMP},
    }


# ── short texts


def path_names(node: PathNode, actions: Actions) -> list[str]:
    """One text an action. A tree is the usual thing; a single file says so."""
    path = show_path(node) + ("" if node[1] else " (file)")
    return [f"fs:{action}:{path}" for action in sorted(actions.words)]


def network_names(place: str, reach: NetworkAccess, *, part: str) -> list[str]:
    return [
        f"{part}:{scheme}://{place}:{','.join(_ports_text(ports))}"
        + ("" if methods in (METHODS, ("",)) else f" {','.join(methods)}")
        for scheme, methods, ports in reach.groups()
    ]


def host_names(node: HostNode, reach: NetworkAccess) -> list[str]:
    return network_names(show_host(node), reach, part="net")


def range_names(node: RangeNode, reach: NetworkAccess) -> list[str]:
    address = show_range(node)
    return network_names(f"[{address}]" if node[0] == 6 else address, reach, part="cidr")


def browser_names(node: HostNode, actions: Actions) -> list[str]:
    if node == ((), True) and actions.words == set(BROWSER_ACTIONS):
        return ["browser"]
    return [f"browser:{action}:{show_host(node)}" for action in sorted(actions.words)]


def ceiling_name(name: str, most: int) -> str:
    return f"{'tmp' if name == TMP else name}:{most}"


def list_capability_names(value: Capabilities) -> list[str]:
    found = [name for node, own in sorted(value.fs.own(), key=lambda rule: rule[0]) for name in path_names(node, own)]
    found += [name for node, own in sorted(value.net.own(), key=lambda rule: rule[0]) for name in host_names(node, own)]
    found += [
        name for node, own in sorted(value.cidr.own(), key=lambda rule: rule[0]) for name in range_names(node, own)
    ]
    found += [
        name for node, own in sorted(value.browser.own(), key=lambda rule: rule[0]) for name in browser_names(node, own)
    ]
    found += [f"proc:{path}" for path in sorted(value.proc)]
    found += [f"secret:{name}" for name in sorted(value.secrets)]
    return found + [ceiling_name(name, most) for name, most in sorted(value.ceilings.items()) if most]
