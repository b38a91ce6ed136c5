"""Capability forms: how are capabilities written and read, and what is said when some are taken away?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import manifest
from unitools.capabilities import (
    TOP,
    Capabilities,
    build_allow_list_bound,
    effective,
    explain,
    list_missing_capabilities,
)
from unitools.manifest import Manifest


def net(host: str, **rest: Any) -> Capabilities:
    return Capabilities.from_json({"net": [{"host": host, **rest}]})


def tree(path: str, *actions: str, kind: str = "tree") -> Capabilities:
    return Capabilities.from_json({"fs": [{"path": path, "actions": list(actions or ["read"]), "kind": kind}]})


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("asked", "bound", "within"),
    [
        ("a.example.org", "*.example.org", True),
        ("x.a.example.org", "*.example.org", True),
        ("*.a.example.org", "*.example.org", True),
        ("*.example.org", "*.example.org", True),
        ("*.example.org", "*", True),
        ("example.org", "*.example.org", False),
        ("evilexample.org", "*.example.org", False),
        ("*.evilexample.org", "*.example.org", False),
        ("*.org", "*.example.org", False),
        ("*.example.org", "example.org", False),
        ("*", "*.org", False),
    ],
)
def test_a_wildcard_holds_strict_subdomains_only(asked: str, bound: str, within: bool) -> None:
    assert (net(asked) <= net(bound)) is within


def test_trees_meet_in_the_smaller_one_and_by_whole_names() -> None:
    nothing = Capabilities.from_json({})

    assert tree("/data") & tree("/data/in") == tree("/data/in")
    assert tree("/data") & tree("/database") == nothing
    assert tree("/data") & tree("/data", "write") == nothing
    assert tree("/data/") == tree("/data") == tree("/data/./") == tree("/./data")
    assert tree("/data", kind="file") & tree("/data") == tree("/data", kind="file")
    assert tree("/data", kind="file") & tree("/data/in") == nothing


@pytest.mark.parametrize(
    "path",
    ["relative", "/a/../b", "..", "/..", "//host/share", "/a\0b", "/a\nb", "/a/*", "/\ud800", "", "/" + "a" * 400],
)
def test_paths_that_are_not_plain_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="absolute"):
        tree(path)


@pytest.mark.parametrize("path", ["/", "/a/", "/a/."])
def test_a_file_is_named_as_one_file(path: str) -> None:
    with pytest.raises(ValueError, match="one file"):
        tree(path, kind="file")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("API.Example.ORG", "api.example.org"),
        ("api.example.org.", "api.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("例子.测试", "xn--fsqu00a.xn--0zwm56d"),
        ("例子。测试", "xn--fsqu00a.xn--0zwm56d"),
        ("*.Bücher.example", "*.xn--bcher-kva.example"),
    ],
)
def test_a_host_is_read_as_the_name_that_is_looked_up(written: str, read: str) -> None:
    assert net(written) == net(read)
    assert net(written).to_json()["net"][0]["host"] == read


@pytest.mark.parametrize(
    "host",
    [
        "a.*.org",
        "*a.org",
        "**.org",
        "*.",
        "a..org",
        ".org",
        "-a.org",
        "a_b.org",
        "a.org/",
        "a.org:443",
        "user@a.org",
        "a" * 64 + ".org",
        ".".join(["a" * 50] * 6),
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "[::1]",
        "::1",
        "１２７.0.0.1",
        "a.org\n",
        "",
        None,
        7,
    ],
)
def test_what_is_no_host_name_is_refused_and_an_address_is_none(host: Any) -> None:
    with pytest.raises(ValueError, match=r"host|address"):
        net(host)


def test_a_rule_about_names_never_allows_an_address() -> None:
    every_name = net("*", ports=["1-65535"])

    assert not every_name.allows_address("93.184.216.34", port=443)
    with pytest.raises(ValueError, match="address"):
        every_name.allows_host("93.184.216.34")


def test_an_ipv4_address_is_the_same_however_it_is_written() -> None:
    mapped = Capabilities.from_json({"cidr": [{"cidr": "::ffff:10.0.0.0/104", "ports": ["443"]}]})
    every_ipv6 = Capabilities.from_json({"cidr": [{"cidr": "::/0", "ports": ["443"]}]})

    assert mapped.names() == ["cidr:tcp://10.0.0.0/8:443"]
    assert mapped.allows_address("::ffff:10.1.2.3", port=443)
    assert not every_ipv6.allows_address("::ffff:10.1.2.3", port=443)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"cidr": [{"cidr": "10.0.0.1/8", "ports": ["1"]}]}, "range of addresses"),
        ({"cidr": [{"cidr": "fe80::%eth0/64", "ports": ["1"]}]}, "range of addresses"),
        ({"cidr": [{"cidr": "10.0.0.0/8"}]}, "ports"),
        ({"net": [{"host": "a.org", "ports": ["9-3"]}]}, "range of ports"),
        ({"net": [{"host": "a.org", "ports": ["0"]}]}, "range of ports"),
        ({"net": [{"host": "a.org", "ports": ["70000"]}]}, "range of ports"),
        ({"net": [{"host": "a.org", "port": True}]}, "port"),
        ({"net": [{"host": "a.org", "port": 443, "ports": ["443"]}]}, "either"),
        ({"net": [{"host": "a.org", "methods": ["get"]}]}, "methods"),
        ({"net": [{"host": "a.org", "scheme": "ftp"}]}, "schemes"),
        ({"net": [{"hots": "a.org"}]}, "host"),
        ({"net": {"host": "a.org"}}, "list"),
        ({"fs": [{"path": "/a", "actions": ["chmod"]}]}, "actions"),
        ({"fs": [{"path": "/a"}]}, "actions"),
        ({"fs": [{"path": "/a", "actions": ["read"], "kind": "glob"}]}, "tree nor file"),
        ({"browser": "yes"}, "browser"),
        ({"proc": ["ls"]}, "absolute"),
        ({"secrets": ["a b"]}, "secret"),
        ({"tmp": -1}, "tmp"),
        ({"tmp": "1"}, "tmp"),
        ({"tmp": 2**60}, "tmp"),
        ({"limits": {"timeout_s": 1}}, "limits"),
        ({"limits": {"timeout_ms": 1.5}}, "timeout_ms"),
        ({"network": []}, "no capability"),
        ([], "object"),
        (None, "object"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(document: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Capabilities.from_json(document)


def test_names_say_what_is_there_shortly() -> None:
    value = Capabilities.from_json(
        {
            "fs": [
                {"path": "/data", "actions": ["read"]},
                {"path": "/data/x", "actions": ["read", "write"], "kind": "file"},
            ],
            "net": [{"host": "a.org"}, {"host": "*.a.org", "ports": ["80", "8000-8010"], "methods": ["GET"]}],
            "cidr": [{"cidr": "2001:db8::/32", "ports": ["53"], "scheme": "udp"}],
            "browser": True,
            "proc": ["/bin/ls"],
            "secrets": ["API_KEY"],
            "tmp": 4096,
            "limits": {"timeout_ms": 1000},
        }
    )

    assert value.names() == [
        "fs:read:/data",
        "fs:write:/data/x (file)",
        "net:https://a.org:443",
        "net:https://*.a.org:80,8000-8010 GET",
        "cidr:udp://[2001:db8::/32]:53",
        "browser",
        "proc:/bin/ls",
        "secret:API_KEY",
        "timeout_ms:1000",
        "tmp:4096",
    ]
    assert value.domains() == ("fs", "net", "cidr", "browser", "proc", "secrets")


def test_a_browser_goes_only_where_the_net_lets_it() -> None:
    value = net("a.org") & TOP.replaced(browser=Capabilities.from_json({"browser": True}).browser)
    browsing = value.replaced(browser=TOP.browser)

    assert not value.allows_browser("a.org", "navigate")
    assert browsing.allows_browser("a.org", "navigate")
    assert not browsing.allows_browser("b.org", "navigate")


@pytest.mark.req("TOOLS-16")
def test_an_explanation_says_for_each_loss_who_took_it_and_what_is_left() -> None:
    asked = Capabilities.from_json(
        {
            "fs": [{"path": "/data", "actions": ["read", "write"]}, {"path": "/etc", "actions": ["read"]}],
            "net": [{"host": "*.a.org", "ports": ["80", "443"]}],
            "proc": ["/bin/a", "/bin/b"],
            "tmp": 100,
        }
    )
    grant = asked.replaced(fs=tree("/data/in").fs)
    policy = Capabilities.from_json(
        {
            "fs": [{"path": "/", "actions": ["read", "write"]}],
            "net": [{"host": "x.a.org"}, {"host": "*.b.org"}],
            "proc": ["/bin/a"],
            "tmp": 60,
        }
    )

    assert explain(asked, grant=grant, policy=policy, installation=None) == [
        {"capability": "fs:read:/data", "dropped_by": "grant", "kept": "fs:read:/data/in"},
        {"capability": "fs:write:/data", "dropped_by": "grant"},
        {"capability": "fs:read:/etc", "dropped_by": "grant"},
        {"capability": "net:https://*.a.org:80,443", "dropped_by": "policy", "kept": "net:https://x.a.org:443"},
        {"capability": "proc:/bin/b", "dropped_by": "policy"},
        {"capability": "tmp:100", "dropped_by": "policy", "kept": "tmp:60"},
    ]


def test_a_lower_ceiling_is_explained_but_lacks_nothing() -> None:
    asked = Capabilities.from_json({"tmp": 100, "limits": {"timeout_ms": 9}, "proc": ["/bin/a"]})
    policy = Capabilities.from_json({"tmp": 60, "limits": {"timeout_ms": 5}})

    met, explanation = effective(asked, policy=policy)

    assert met == policy
    assert [entry["capability"] for entry in explanation] == ["proc:/bin/a", "timeout_ms:9", "tmp:100"]
    assert [entry["capability"] for entry in list_missing_capabilities(explanation)] == ["proc:/bin/a"]


@pytest.mark.req("SPEC-2")
def test_a_dry_run_keeps_only_what_changes_nothing() -> None:
    asked = Capabilities.from_json(
        {"fs": [{"path": "/data", "actions": ["read", "write"]}], "net": [{"host": "a.org"}], "tmp": 100}
    )

    met, explanation = effective(asked, grant=TOP, dry_run=True)

    assert met.names() == ["fs:read:/data", "tmp:100"]
    assert explanation == [
        {"capability": "fs:write:/data", "dropped_by": "dry_run"},
        {"capability": "net:https://a.org:443", "dropped_by": "dry_run"},
    ]
    assert list_missing_capabilities(explanation) == []


def test_what_a_version_asks_for_has_its_limits_as_ceilings() -> None:
    document = manifest(timeout_ms=2000, capabilities={"tmp": 4096}, limits={"memory_bytes": 64 * 1024 * 1024})

    asked = Capabilities.of_manifest(Manifest(document))

    assert asked.ceilings["timeout_ms"] == 2000
    assert asked.ceilings["memory_bytes"] == 64 * 1024 * 1024
    assert asked.tmp == 4096


def test_allow_lists_bound_what_they_name_and_nothing_else() -> None:
    asked = Capabilities.from_json(
        {
            "fs": [{"path": "/data", "actions": ["read"]}],
            "net": [{"host": "a.org"}, {"host": "b.org"}],
            "cidr": [{"cidr": "10.0.0.0/8", "ports": ["443"]}],
            "proc": ["/bin/a"],
        }
    )

    def left(hosts: list[str] | None, paths: list[str] | None) -> list[str]:
        return effective(asked, installation=build_allow_list_bound(hosts, paths))[0].names()

    assert build_allow_list_bound(None, None) is None
    assert left(None, None) == asked.names()
    assert left(["*.org", "10.1.0.0/16"], None) == [
        "fs:read:/data",
        "net:https://a.org:443",
        "net:https://b.org:443",
        "cidr:tcp://10.1.0.0/16:443",
        "proc:/bin/a",
    ]
    assert left([], ["/data/in"]) == ["fs:read:/data/in", "proc:/bin/a"]
    with pytest.raises(ValueError, match="absolute"):
        build_allow_list_bound(None, ["../etc"])
    with pytest.raises(ValueError, match="range of addresses"):
        build_allow_list_bound(["10.0.0.1/8"], None)
