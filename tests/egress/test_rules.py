"""Rules of the gate: does the gate say exactly what the capabilities say?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.sandbox.egress import EgressRules, ServiceWay, list_unenforceable
from invocations.sandbox.egress.request_head import RequestTarget, read_head
from tests.support.capability_reference import HOSTS, Reference, documents
from unitools.capabilities import Capabilities
from unitools.capabilities.values import METHODS

hosts = st.sampled_from([host for host in HOSTS if "*" not in host] + ["q.x.a.org", "b.com", "org"])
ports = st.sampled_from([80, 440, 443, 445, 1, 65535])
addresses = st.sampled_from(
    ["10.0.0.0", "10.0.0.9", "10.0.0.15", "10.9.9.9", "192.0.2.1", "2001:db8::1", "2001:db8:8000::1"]
)


def lets_through(document: dict[str, Any], head: str) -> bool:
    return EgressRules(Capabilities.from_json(document)).refusal(read_head(head.encode() + b"\r\n\r\n")) is None


@pytest.mark.req("TOOLS-16")
@given(documents, hosts, ports)
def test_a_tunnel_is_let_through_when_every_method_of_https_is_held(
    document: dict[str, Any], host: str, port: int
) -> None:
    held = Capabilities.from_json(document)
    said = lets_through(document, f"CONNECT {host}:{port} HTTP/1.1")

    assert said == all(held.allows_host(host, port=port, scheme="https", method=method) for method in METHODS)
    assert said == all(Reference(document).host(host, "https", method, port) for method in METHODS)


@pytest.mark.req("TOOLS-16")
@given(documents, hosts, ports, st.sampled_from(METHODS))
def test_a_request_is_let_through_when_its_method_of_http_is_held(
    document: dict[str, Any], host: str, port: int, method: str
) -> None:
    said = lets_through(document, f"{method} http://{host}:{port}/ HTTP/1.1")

    assert said == Capabilities.from_json(document).allows_host(host, port=port, scheme="http", method=method)
    assert said == Reference(document).host(host, "http", method, port)


@pytest.mark.req("TOOLS-16")
@given(documents, addresses, ports)
def test_an_address_is_let_through_when_a_range_holds_it(document: dict[str, Any], address: str, port: int) -> None:
    written = f"[{address}]" if ":" in address else address

    for head in (f"CONNECT {written}:{port} HTTP/1.1", f"GET http://{written}:{port}/ HTTP/1.1"):
        said = lets_through(document, head)
        assert said == Capabilities.from_json(document).allows_address(address, port=port)
        assert said == Reference(document).address(address, "tcp", port)


@given(documents, hosts, ports)
def test_what_the_sandbox_does_not_report_as_missing_is_let_through(
    document: dict[str, Any], host: str, port: int
) -> None:
    held = Capabilities.from_json(document)
    some = any(held.allows_host(host, port=port, scheme="https", method=method) for method in METHODS)

    if some and not list_unenforceable(held):
        assert lets_through(document, f"CONNECT {host}:{port} HTTP/1.1")


@given(documents)
def test_only_methods_of_https_and_datagrams_are_missing(document: dict[str, Any]) -> None:
    plain = [rule | {"scheme": "http"} for rule in document.get("net", [])]
    whole = [{name: value for name, value in rule.items() if name != "methods"} for rule in document.get("net", [])]
    streams = [rule | {"scheme": "tcp"} for rule in document.get("cidr", [])]

    assert list_unenforceable(Capabilities.from_json({"net": plain, "cidr": streams})) == ()
    assert list_unenforceable(Capabilities.from_json({"net": whole, "cidr": streams})) == ()


def test_what_is_missing_is_named() -> None:
    document = {
        "net": [{"host": "a.org", "methods": ["GET", "HEAD"]}, {"host": "b.org"}, {"host": "c.org", "scheme": "http"}],
        "cidr": [{"cidr": "10.0.0.0/8", "ports": [53], "scheme": "udp"}, {"cidr": "10.0.0.0/8", "ports": [53]}],
    }

    assert list_unenforceable(Capabilities.from_json(document)) == (
        "cidr:udp://10.0.0.0/8:53",
        "net:https://a.org:443 GET,HEAD",
    )


@given(documents, hosts, ports, st.sampled_from(METHODS))
def test_by_an_operation_each_method_of_https_is_held_to(
    document: dict[str, Any], host: str, port: int, method: str
) -> None:
    held = Capabilities.from_json(document)
    way = ServiceWay(method, host, port, "", "/")

    assert not any(each.startswith("net:") for each in list_unenforceable(held, by_gate=True))
    let_through = EgressRules(held).way_refusal(way, way.method) is None
    assert let_through == held.allows_host(host, port=port, scheme="https", method=method)


@given(documents, hosts, ports)
def test_the_named_rule_is_one_of_the_document_and_covers_the_host(
    document: dict[str, Any], host: str, port: int
) -> None:
    """So it is never a word of the tool's own; and there is one exactly when some rule covers host and port."""
    place = EgressRules(Capabilities.from_json(document)).place(RequestTarget(host, port))

    covering = [rule for rule in document.get("net", []) if covers(rule, host, port)]
    patterns = {rule["host"] for rule in document.get("net", []) if covers(rule | {"ports": ["1-65535"]}, host, port)}
    assert bool(place) == bool(covering)
    assert not place or place in patterns


def covers(rule: dict[str, Any], host: str, port: int) -> bool:
    return Reference({"net": [rule | {"methods": list(METHODS)}]}).host(host, rule.get("scheme", "https"), "GET", port)
