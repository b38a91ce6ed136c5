"""Requested capabilities: whether those and the scopes of a manifest are readable, the least set, and consistent."""

from __future__ import annotations

import ipaddress
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from unitools.capabilities import Capabilities
from unitools.checks.findings import declare_rule, declare_warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

LISTS = ("fs", "net", "cidr", "proc")
SHELLS = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ash",
        "ksh",
        "fish",
        "busybox",
        "env",
        "sudo",
        "su",
        "python",
        "perl",
        "ruby",
        "node",
    }
    | {"php", "lua", "awk", "gawk", "xargs", "nohup"}
)
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
FILE_WORDS = frozenset({"read", "write", "create", "delete", "list", "exec"})
CHANGING = frozenset({"write", "create", "update", "delete", "send", "exec", "execute", "pay", "publish"})
WIDE_PORTS = 100
WIDE_RANGE = {4: 16, 6: 48}

INVALID = declare_rule(
    "capabilities.invalid",
    "Capabilities can be read in one way only: plain absolute paths, host names, networks, ports in order.",
    "Use plain absolute paths without `..`, host names in place of addresses, and either port or ports.",
)
REDUNDANT = declare_warning(
    "capabilities.redundant",
    "No entry asks for what another one holds already.",
    "Remove the entry, or the wider one.",
)
BROAD = declare_warning(
    "capabilities.broad",
    "Capabilities are the least set: no whole disk, no system folder to write, no whole domain, no wide network or port range.",
    "Name what the tool really needs; a tenant can add to it in its installation.",
)
CLEARTEXT = declare_warning("capabilities.cleartext", "Networks are reached by https.", 'Use "scheme": "https".')
NOT_ENFORCEABLE = declare_warning(
    "capabilities.not_enforceable",
    "Nothing is asked for that no gate can hold a tool to: single methods inside https, which nobody sees from outside, or UDP.",
    "Leave `methods` out with https, and reach addresses by tcp: calls that ask for the other are refused.",
)
INTERNAL = declare_warning(
    "capabilities.internal",
    "No address is of the machine itself or of its link: there cloud services give out credentials.",
    "Name the hosts that the tool needs, or the private network.",
)
SHELL = declare_warning(
    "capabilities.shell",
    "No program is a shell or an interpreter: with one, every program can be run.",
    "Name the program itself.",
)
SCOPE_INVALID = declare_rule(
    "scopes.invalid",
    "A scope soul:fs:… names an absolute path, soul:net:… a host.",
    "Write soul:fs:/path or soul:net:host, as under capabilities.",
)
SCOPE_WITHOUT = declare_rule(
    "scopes.without_capability",
    "A scope on files, network, browser or programs has its capability.",
    "Add the capability, or drop the scope.",
)
SCOPE_OUTSIDE = declare_rule(
    "scopes.outside_capability",
    "A scope lies within the capabilities: nobody is asked for a permission that the sandbox would not give.",
    "Widen the capability, or narrow the scope.",
)
SCOPE_TWICE = declare_warning("scopes.duplicate", "Each scope stands once.", "Remove one of them.")
SCOPE_CHANGES = declare_rule(
    "scopes.change_without_effect",
    "A tool with side effect None or Read asks for no scope that changes something.",
    "Name the side effect Write (or a graver one), or correct the action.",
)
BROWSER_NOWHERE = declare_warning(
    "capabilities.browser_without_net",
    "A browser goes only to hosts that net names.",
    "Add the hosts under capabilities.net.",
)
UNSCOPED = declare_warning(
    "capabilities.without_scope",
    "Where scopes are named, each capability has one: what is not named cannot be withheld by a grant.",
    "Add a scope for it.",
)


@lru_cache(maxsize=1024)
def _read(text: str) -> Capabilities:
    return Capabilities.from_json(json.loads(text))


def _one(kind: str, entry: Any) -> Capabilities:
    """A single entry as a value. Read once, however many others it is held against; ``ValueError`` when it cannot be read."""
    return _read(json.dumps({kind: [entry]}))


def check_capabilities(manifest: Manifest) -> Iterator[ManifestFinding]:
    """Each list entry by itself, so that the one that is wrong is named."""
    for kind in LISTS:
        for place, entry in enumerate(manifest.capabilities.get(kind, [])):
            try:
                _one(kind, entry)
            except ValueError as error:
                yield INVALID.at(("capabilities", kind, place), str(error))


def has_readable_capabilities(manifest: Manifest) -> bool:
    return not any(check_capabilities(manifest))


def check_least(manifest: Manifest) -> Iterator[ManifestFinding]:
    if not has_readable_capabilities(manifest):
        return
    for kind in LISTS:
        entries = manifest.capabilities.get(kind, [])
        for place, entry in enumerate(entries):
            asked = _one(kind, entry)
            others = [each for each in entries if each != entry and (asked & _one(kind, each)).domains()]
            others += [entry] * (entry in entries[:place])
            if others and asked <= Capabilities.from_json({kind: others}):
                yield REDUNDANT.at(("capabilities", kind, place), "Another entry holds this one already.")
            for sentence in _broad(kind, entry):
                yield BROAD.at(("capabilities", kind, place), sentence)


def _broad(kind: str, entry: Any) -> Iterator[str]:
    if kind == "fs":
        path = entry["path"].rstrip("/") or "/"
        if path == "/":
            yield "The whole disk is asked for."
        elif set(entry["actions"]) - {"read", "list"} and any(
            path == each or path.startswith(each + "/") for each in SYSTEM
        ):
            yield f"{path} belongs to the system and is asked for more than reading."
    if kind == "net":
        host = entry["host"]
        if host == "*" or (host.startswith("*.") and "." not in host[2:]):
            yield f"{host} is every host of a whole domain."
    if kind == "cidr":
        network = ipaddress.ip_network(entry["cidr"])
        if network.prefixlen < WIDE_RANGE[network.version]:
            yield f"{entry['cidr']} holds {network.num_addresses:,} addresses."
    if kind in ("net", "cidr"):
        for ports in entry.get("ports", []):
            low, _, high = ports.partition("-")
            if high and int(high) - int(low) >= WIDE_PORTS:
                yield f"{ports} are {int(high) - int(low) + 1:,} ports."


def check_dangerous(manifest: Manifest) -> Iterator[ManifestFinding]:
    if not has_readable_capabilities(manifest):
        return
    for kind in ("net", "cidr"):
        for place, entry in enumerate(manifest.capabilities.get(kind, [])):
            if entry.get("scheme") == "http":
                yield CLEARTEXT.at(
                    ("capabilities", kind, place, "scheme"), "What is sent by http can be read and changed."
                )
            is_seen = manifest.is_by_gate  # which opens TLS itself then
            if entry.get("scheme", "https") == "https" and entry.get("methods") and kind == "net" and not is_seen:
                yield NOT_ENFORCEABLE.at(("capabilities", kind, place, "methods"), "The methods are inside https.")
            if entry.get("scheme") == "udp":
                yield NOT_ENFORCEABLE.at(("capabilities", kind, place, "scheme"), "UDP is asked for.")
    for place, entry in enumerate(manifest.capabilities.get("cidr", [])):
        network = ipaddress.ip_network(entry["cidr"])
        if any(network.version == each.version and network.overlaps(each) for each in _OWN):
            yield INTERNAL.at(
                ("capabilities", "cidr", place), f"{entry['cidr']} holds addresses of the machine or its link."
            )
    if manifest.capabilities.get("browser") and not manifest.capabilities.get("net"):
        yield BROWSER_NOWHERE.at(("capabilities", "browser"), "A browser is asked for, but no host.")
    for place, path in enumerate(manifest.capabilities.get("proc", [])):
        if path.rsplit("/", 1)[-1].rstrip("0123456789.") in SHELLS:
            yield SHELL.at(("capabilities", "proc", place), f"{path} can run every other program.")


_OWN = [ipaddress.ip_network(each) for each in ("127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8", "::1/128", "fe80::/10")]


def _within(kind: str, rest: str, action: str, entry: Any) -> bool:
    """Whether one capability entry holds what a scope's resource names. ``ValueError`` when the resource cannot be read."""
    match kind:
        case "fs":
            asked: dict[str, Any] = {"path": rest, "kind": "tree" if rest.endswith("/") else "file"}
            asked["actions"] = [action] if action in FILE_WORDS else entry["actions"][:1]
        case "net":
            host, port = _host_and_port(rest)
            named = {name: value for name, value in entry.items() if name not in ("port", "ports")} if port else entry
            asked = named | {"host": host} | ({"ports": [port]} if port else {})
        case "cidr":
            host, port = _host_and_port(rest)
            asked = entry | {"cidr": host} | ({"ports": [port]} if port else {})
        case _:
            return bool(entry == rest or kind == "browser")
    return Capabilities.from_json({kind: [asked]}) <= _one(kind, entry)


def _host_and_port(rest: str) -> tuple[str, str]:
    host, colon, port = rest.partition("/")[0].rpartition(":")
    return (host, port) if colon and port.isdigit() and ":" not in host else (rest.partition("/")[0], "")


def _is_address(rest: str) -> bool:
    try:
        ipaddress.ip_network(_host_and_port(rest)[0])
    except ValueError:
        return False
    return True


def _entries(manifest: Manifest, kind: str) -> list[Any]:
    value = manifest.capabilities.get(kind) or []
    return [value] if kind == "browser" and value else list(value)


def check_scopes(manifest: Manifest) -> Iterator[ManifestFinding]:
    """TOOLS-8: scopes and capabilities against each other, both ways."""
    seen: set[tuple[str, str]] = set()
    can_be_read = has_readable_capabilities(manifest)
    for place, scope in enumerate(manifest.scopes):
        _, kind, rest = scope["resource"].split(":", 2)
        key = (scope["resource"], scope["action"])
        if key in seen:
            yield SCOPE_TWICE.at(("scopes", place), f"{scope['resource']} for {scope['action']} is asked for twice.")
        seen.add(key)
        if scope["action"] in CHANGING and manifest.side_effect in ("None", "Read"):
            yield SCOPE_CHANGES.at(
                ("scopes", place, "action"),
                f"The scope asks to {scope['action']}, but side_effect is {manifest.side_effect}.",
            )
        if kind in ("fs", "net", "browser", "proc"):
            yield from _scope(manifest, place, kind, rest, can_be_read=can_be_read)
    if manifest.scopes and can_be_read:
        yield from _unscoped(manifest)


def _scope(manifest: Manifest, place: int, kind: str, rest: str, *, can_be_read: bool) -> Iterator[ManifestFinding]:
    if kind == "net" and _is_address(rest):
        kind = "cidr"
    resource, action = manifest.scopes[place]["resource"], manifest.scopes[place]["action"]
    entries = _entries(manifest, kind)
    if not entries:
        yield SCOPE_WITHOUT.at(
            ("scopes", place),
            f"The scope {resource} needs the capability {kind}.",
            f"Add capabilities.{kind}, or drop the scope.",
        )
    elif can_be_read:
        try:
            held = [_within(kind, rest, action, entry) for entry in entries]
        except ValueError as error:
            yield SCOPE_INVALID.at(("scopes", place, "resource"), str(error))
        else:
            if not any(held):
                yield SCOPE_OUTSIDE.at(("scopes", place), f"No capability holds {resource} for {action}.")


def _unscoped(manifest: Manifest) -> Iterator[ManifestFinding]:
    said = [(*scope["resource"].split(":", 2)[1:], scope["action"]) for scope in manifest.scopes]
    for kind in (*LISTS, "browser"):
        asked = [
            (rest, action)
            for named, rest, action in said
            if kind == ("cidr" if named == "net" and _is_address(rest) else named)
        ]
        for place, entry in enumerate(_entries(manifest, kind)):
            path = ("capabilities", kind) if kind == "browser" else ("capabilities", kind, place)
            if not any(_held(kind, rest, action, entry) for rest, action in asked):
                yield UNSCOPED.at(path, "No scope names this capability.")


def _held(kind: str, rest: str, action: str, entry: Any) -> bool:
    try:
        return _within(kind, rest, action, entry)
    except ValueError:
        return False
