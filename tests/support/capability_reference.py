"""Capability reference: which capabilities do the laws have to hold for, and what do they allow, read a second way?

The generators write documents, with few words, so that rules nest and overlap often. :class:`Reference` reads a document with
string operations only and shares no code with the algebra.
"""

from __future__ import annotations

import ipaddress
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from unitools.capabilities import CEILINGS, Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_ACTIONS = ["read", "write", "list"]
PATHS = ["/", "/data", "/data/in", "/data/in/x", "/database", "/data/out", "/etc"]
HOSTS = ["*", "*.org", "*.a.org", "a.org", "x.a.org", "*.x.a.org", "evila.org", "*.com"]
# Ranges of 10.0.0.0/28 and of the IPv6 neighbourhood: halves make up wholes.
RANGES = [
    *(f"10.0.0.{first}/{length}" for length in range(28, 33) for first in range(0, 16, 2 ** (32 - length))),
    "10.0.0.0/8",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "2001:db8::/33",
    "2001:db8:8000::/33",
]
PORTS = ["443", "80", "440-450", "444-446", "1-65535"]
METHODS = ["GET", "POST", "PUT"]
BROWSER_ACTIONS = ["navigate", "download"]

spots = st.lists(st.sampled_from(PORTS), min_size=1, max_size=2)
file_rules = st.fixed_dictionaries(
    {"path": st.sampled_from(PATHS), "actions": st.lists(st.sampled_from(FILE_ACTIONS), min_size=1, unique=True)},
    optional={"kind": st.sampled_from(["tree", "file"])},
).filter(lambda rule: rule["path"] != "/" or rule.get("kind") != "file")
net_rules = st.fixed_dictionaries(
    {"host": st.sampled_from(HOSTS), "ports": spots},
    optional={
        "scheme": st.sampled_from(["http", "https"]),
        "methods": st.lists(st.sampled_from(METHODS), min_size=1, unique=True),
    },
)
range_rules = st.fixed_dictionaries(
    {"cidr": st.sampled_from(RANGES), "ports": spots}, optional={"scheme": st.sampled_from(["tcp", "udp"])}
)
browser_rules = st.fixed_dictionaries(
    {
        "host": st.sampled_from(HOSTS),
        "actions": st.lists(st.sampled_from(BROWSER_ACTIONS), min_size=1, unique=True),
    }
)
name_sets = st.one_of(st.just(["*"]), st.lists(st.sampled_from(["/bin/a", "/bin/b", "/bin/c"]), unique=True))
documents: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "fs": st.lists(file_rules, max_size=4),
        "net": st.lists(net_rules, max_size=4),
        "cidr": st.lists(range_rules, max_size=6),
        "browser": st.one_of(st.booleans(), st.lists(browser_rules, max_size=3)),
        "proc": name_sets,
        "secrets": st.lists(st.sampled_from(["A", "B"]), unique=True),
        "tmp": st.integers(0, 3),
        "limits": st.dictionaries(st.sampled_from(["timeout_ms", "memory_bytes"]), st.integers(0, 3)),
    },
)
values = documents.map(Capabilities.from_json)


# Few words, many questions: each answer is worked out once.


@cache
def _host(host: str, pattern: str) -> bool:
    return pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:]))


@cache
def _port(port: int, *texts: str) -> bool:
    pairs = [text.split("-") for text in texts]
    return any(int(pair[0]) <= port <= int(pair[-1]) for pair in pairs)


@cache
def _address(address: str, cidr: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(cidr)


class Reference:
    """What a document allows, question by question."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def path(self, path: str, action: str) -> bool:
        for rule in self.document.get("fs", []):
            inside = rule.get("kind", "tree") == "tree" and (path + "/").startswith(rule["path"].rstrip("/") + "/")
            if (path == rule["path"] or inside) and action in rule["actions"]:
                return True
        return False

    def host(self, host: str, scheme: str, method: str, port: int) -> bool:
        return any(
            _host(host, rule["host"])
            and scheme == rule.get("scheme", "https")
            and method in rule.get("methods", [method])
            and _port(port, *rule["ports"])
            for rule in self.document.get("net", [])
        )

    def address(self, address: str, protocol: str, port: int) -> bool:
        return any(
            _address(address, rule["cidr"]) and protocol == rule.get("scheme", "tcp") and _port(port, *rule["ports"])
            for rule in self.document.get("cidr", [])
        )

    def browser(self, host: str, action: str) -> bool:
        rules = self.document.get("browser", False)
        if isinstance(rules, bool):
            return rules
        return any(_host(host, rule["host"]) and action in rule["actions"] for rule in rules)

    def name(self, part: str, name: str) -> bool:
        return not {"*", name}.isdisjoint(self.document.get(part, []))

    def amount(self, name: str, amount: int) -> bool:
        if name == "tmp_bytes":
            return amount <= int(self.document.get("tmp", 0))
        return amount <= int(self.document.get("limits", {}).get(name, amount))


# One question for every class of points that a document can tell apart: each place, something new in it, and beside it.
PATH_QUESTIONS = list(
    product([path + more for path in map(str, PATHS) if path != "/" for more in ("", "/new", "new")], FILE_ACTIONS)
)
HOST_NAMES = [
    "org",
    "a.org",
    "x.a.org",
    "y.a.org",
    "b.x.a.org",
    "evila.org",
    "z.evila.org",
    "com",
    "b.com",
    "localhost",
]
HOST_QUESTIONS = list(product(HOST_NAMES, ["http", "https"], [*METHODS, "DELETE"], [79, 80, 440, 443, 444, 447, 451]))
ADDRESSES = [*(f"10.0.0.{last}" for last in range(17)), "10.1.1.1", "9.9.9.9", "2001:db8::1", "2001:db8:8000::1", "::1"]
ADDRESS_QUESTIONS = list(product(ADDRESSES, ["tcp", "udp"], [80, 443, 445, 447, 451]))
BROWSER_QUESTIONS = list(product(HOST_NAMES, [*BROWSER_ACTIONS, "upload"]))
NAME_QUESTIONS = [
    *product(["proc"], ["/bin/a", "/bin/b", "/bin/c", "/bin/new"]),
    *product(["secrets"], ["A", "B", "C"]),
]
AMOUNT_QUESTIONS = list(product(CEILINGS, range(5)))


def answers_of_reference(reference: Reference) -> Iterator[bool]:
    """The answers to all questions, in an order of their own."""
    yield from (reference.path(*each) for each in PATH_QUESTIONS)
    yield from (reference.host(*each) for each in HOST_QUESTIONS)
    yield from (reference.address(*each) for each in ADDRESS_QUESTIONS)
    yield from (reference.browser(*each) for each in BROWSER_QUESTIONS)
    yield from (reference.name(*each) for each in NAME_QUESTIONS)
    yield from (reference.amount(*each) for each in AMOUNT_QUESTIONS)


def answers_of(value: Capabilities) -> Iterator[bool]:
    """What the algebra answers to the same questions, in the same order."""
    everywhere = value.replaced(net=Capabilities.from_json({"net": [{"host": "*"}]}).net)  # `browser` by itself
    yield from (value.allows_path(*each) for each in PATH_QUESTIONS)
    for host, scheme, method, port in HOST_QUESTIONS:
        yield value.allows_host(host, scheme=scheme, method=method, port=port)
    for address, protocol, port in ADDRESS_QUESTIONS:
        yield value.allows_address(address, protocol=protocol, port=port)
    yield from (everywhere.allows_browser(*each) for each in BROWSER_QUESTIONS)
    yield from (not {"*", name}.isdisjoint(getattr(value, part)) for part, name in NAME_QUESTIONS)
    yield from (amount <= value.ceilings.get(name, amount) for name, amount in AMOUNT_QUESTIONS)
