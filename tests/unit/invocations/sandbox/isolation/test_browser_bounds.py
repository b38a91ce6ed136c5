"""Browser bounds: is a browser given only with bounds that it can be held to?"""

from __future__ import annotations

from typing import Any

import pytest

from invocations.sandbox.base import Profile
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.isolation.browser_bounds import list_unenforceable_bounds
from unitools.capabilities import Capabilities

NET = [{"host": "*.example.org"}]
ALL = ["clipboard", "download", "navigate", "script", "upload"]


def bounds(**document: Any) -> tuple[str, ...]:
    return list_unenforceable_bounds(Capabilities.from_json(document))


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"net": NET},
        {"browser": True, "net": [{"host": "*"}], "cidr": [{"cidr": "10.0.0.0/8", "ports": ["443"]}]},
        {"browser": True},
        {"browser": [{"host": "*.example.org"}], "net": NET},
        {"browser": [{"host": "*.example.org", "actions": ALL}], "net": [{"host": "a.example.org"}]},
        {"browser": [{"host": "a.example.org"}]},
    ],
)
def test_bounds_that_the_way_out_of_the_box_keeps_anyway_are_kept(document: dict[str, Any]) -> None:
    assert bounds(**document) == ()


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"browser": [{"host": "*.example.org", "actions": ["navigate"]}], "net": NET},
            ["browser:navigate:*.example.org"],
        ),
        (
            {"browser": [{"host": "a.example.org"}], "net": NET},
            [f"browser:{action}:a.example.org" for action in ALL],
        ),
        (
            {"browser": [{"host": "*.example.org"}], "net": NET, "cidr": [{"cidr": "10.0.0.0/8", "ports": ["443"]}]},
            [f"browser:{action}:*.example.org" for action in ALL],
        ),
    ],
    ids=["no scripts", "fewer hosts than net", "addresses as well"],
)
def test_bounds_that_nobody_could_keep_are_refused_by_name(document: dict[str, Any], said: list[str]) -> None:
    assert bounds(**document) == tuple(said)
    sandbox = DockerSandbox("image", "test", gate=EgressGate())
    assert sandbox.missing(Profile(capabilities=Capabilities.from_json(document))) == tuple(said)
    sandbox.close()
