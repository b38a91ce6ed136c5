"""Examples for the rules about capabilities and scopes."""

from __future__ import annotations

from typing import Any

from tests.mistakes.base import NET, PLAIN, READ, WRITE, Changes, Mistake, files


def net(*entries: dict[str, Any], **more: Any) -> Changes:
    return {"side_effect": "Network", "capabilities": {"net": list(entries)} | more}


def cidr(*entries: dict[str, Any]) -> Changes:
    return {"side_effect": "Network", "capabilities": {"cidr": list(entries)}}


def host(name: str, **more: Any) -> dict[str, Any]:
    return {"host": name} | more


def scope(resource: str, action: str = "get") -> Changes:
    return {"scopes": [{"resource": resource, "action": action}]}


def programs(*paths: str) -> Changes:
    return {"side_effect": "Process", "safety_class": "High", "capabilities": {"proc": list(paths)}}


PRIVATE = {"cidr": "10.1.0.0/16", "ports": ["5432"]}
API = "api.example.org"
ASKS: dict[str, list[Mistake]] = {
    "capabilities.invalid": [
        Mistake("a path that leaves its tree", files("/a/../b", "read"), "/capabilities/fs/0", files("/b", "read")),
        Mistake(
            "an address as a host",
            net(host(API), host("10.0.0.1")),
            "/capabilities/net/1",
            cidr({"cidr": "10.0.0.1/32", "ports": ["443"]}),
        ),
        Mistake(
            "port and ports",
            net(host(API, port=443, ports=["444"])),
            "/capabilities/net/0",
            net(host(API, ports=["444"])),
        ),
        Mistake("ports backwards", net(host(API, ports=["9-8"])), "/capabilities/net/0", net(host(API, ports=["8-9"]))),
        Mistake("a port above all", net(host(API, ports=["65536"])), "/capabilities/net/0", net(host(API, port=65535))),
        Mistake("a host with two dots", net(host("a..example.org")), "/capabilities/net/0", net(host("a.example.org"))),
        Mistake("bits beyond the mask", cidr(PRIVATE | {"cidr": "10.1.0.1/16"}), "/capabilities/cidr/0", cidr(PRIVATE)),
        Mistake("no network", cidr(PRIVATE | {"cidr": "1.2.3/8"}), "/capabilities/cidr/0", cidr(PRIVATE)),
        Mistake("a program by a folder", programs("/bin/"), "/capabilities/proc/0", programs("/bin/tar")),
    ],
    "capabilities.redundant": [
        Mistake(
            "within a pattern", net(host("*.example.org"), host(API)), "/capabilities/net/1", net(host("*.example.org"))
        ),
        Mistake("twice", net(host(API), host(API)), "/capabilities/net/1", net(host(API), host(API, port=444))),
        Mistake(
            "within a tree",
            files("/a/b", "read")
            | {"capabilities": {"fs": [{"path": each, "actions": ["read"]} for each in ("/a/b", "/a")]}},
            "/capabilities/fs/0",
            files("/a", "read"),
        ),
    ],
    "capabilities.broad": [
        Mistake("the whole disk", files("/", "read"), "/capabilities/fs/0", files("/data", "read")),
        Mistake("a system folder", files("/etc/ssl", "write"), "/capabilities/fs/0", files("/etc/ssl", "read")),
        Mistake("every host", net(host("*")), "/capabilities/net/0", net(host("*.example.org"))),
        Mistake("a whole domain", net(host("*.org")), "/capabilities/net/0", net(host("example.org"))),
        Mistake("a wide network", cidr(PRIVATE | {"cidr": "10.0.0.0/8"}), "/capabilities/cidr/0", cidr(PRIVATE)),
        Mistake(
            "many ports", net(host(API, ports=["1-65535"])), "/capabilities/net/0", net(host(API, ports=["8000-8010"]))
        ),
    ],
    "capabilities.cleartext": [
        Mistake("http", net(host(API, scheme="http", port=80)), "/capabilities/net/0/scheme", net(host(API)))
    ],
    "capabilities.not_enforceable": [
        Mistake("methods of https", net(host(API, methods=["GET"])), "/capabilities/net/0/methods", net(host(API))),
        Mistake(
            "datagrams",
            cidr(PRIVATE | {"scheme": "udp"}),
            "/capabilities/cidr/0/scheme",
            cidr(PRIVATE | {"scheme": "tcp"}),
        ),
    ],
    "capabilities.internal": [
        Mistake(
            "the cloud's own address",
            cidr({"cidr": "169.254.169.254", "ports": ["80"]}),
            "/capabilities/cidr/0",
            cidr(PRIVATE),
        ),
        Mistake("the machine itself", cidr({"cidr": "::1", "ports": ["80"]}), "/capabilities/cidr/0", cidr(PRIVATE)),
    ],
    "capabilities.shell": [
        Mistake("a shell", programs("/bin/sh"), "/capabilities/proc/0", programs("/usr/bin/pdftotext")),
        Mistake(
            "an interpreter", programs("/bin/tar", "/usr/bin/python3.11"), "/capabilities/proc/1", programs("/bin/tar")
        ),
    ],
    "capabilities.browser_without_net": [
        Mistake(
            "nowhere to go",
            {"side_effect": "Browser", "capabilities": {"browser": True}},
            "/capabilities/browser",
            {"side_effect": "Browser", "capabilities": {"browser": True, "net": [PLAIN]}},
        )
    ],
    "capabilities.without_scope": [
        Mistake(
            "a second host",
            net(host(API), host("b.example.org")) | scope(f"soul:net:{API}"),
            "/capabilities/net/1",
            net(host(API)) | scope(f"soul:net:{API}"),
        ),
        Mistake(
            "a browser",
            net(host(API), browser=True) | scope(f"soul:net:{API}"),
            "/capabilities/browser",
            net(host(API), browser=True)
            | {"scopes": [*scope(f"soul:net:{API}")["scopes"], *scope("soul:browser:any", "open")["scopes"]]},
        ),
        Mistake("scopes of another kind", NET | scope("soul:shop:prices", "read"), "/capabilities/net/0", NET),
    ],
    "scopes.invalid": [
        Mistake(
            "a path that is none",
            files("/a", "read") | scope("soul:fs:a", "read"),
            "/scopes/0/resource",
            files("/a", "read") | scope("soul:fs:/a", "read"),
        ),
        Mistake(
            "a host that is none", NET | scope("soul:net:a b"), "/scopes/0/resource", NET | scope(f"soul:net:{API}")
        ),
    ],
    "scopes.without_capability": [
        Mistake("a network", scope(f"soul:net:{API}"), "/scopes/0", NET | scope(f"soul:net:{API}:443")),
        Mistake(
            "an address", NET | scope("soul:net:10.1.2.3"), "/scopes/0", cidr(PRIVATE) | scope("soul:net:10.1.2.3")
        ),
        Mistake(
            "files",
            READ | scope("soul:fs:/a", "read"),
            "/scopes/0",
            files("/a", "read") | scope("soul:fs:/a/b", "read"),
        ),
        Mistake(
            "a program",
            READ | scope("soul:proc:/bin/tar", "run"),
            "/scopes/0",
            programs("/bin/tar") | scope("soul:proc:/bin/tar"),
        ),
    ],
    "scopes.outside_capability": [
        Mistake(
            "another host", NET | scope("soul:net:b.example.org"), "/scopes/0", NET | scope(f"soul:net:{API}/path")
        ),
        Mistake("another port", NET | scope(f"soul:net:{API}:444"), "/scopes/0", NET | scope(f"soul:net:{API}:443")),
        Mistake(
            "another action",
            files("/a", "read") | scope("soul:fs:/a/b", "write"),
            "/scopes/0",
            files("/a", "read", "write") | scope("soul:fs:/a/b", "write"),
        ),
        Mistake("a wider tree", files("/a/b", "read") | scope("soul:fs:/a/", "read"), "/scopes/0", files("/a", "read")),
        Mistake(
            "another port of an address", cidr(PRIVATE) | scope("soul:net:10.1.2.3:80"), "/scopes/0", cidr(PRIVATE)
        ),
        Mistake(
            "another program", programs("/bin/tar") | scope("soul:proc:/bin/gzip"), "/scopes/0", programs("/bin/tar")
        ),
    ],
    "scopes.duplicate": [
        Mistake(
            "twice",
            {"scopes": scope("soul:shop:prices", "read")["scopes"] * 2},
            "/scopes/1",
            {"scopes": scope("soul:shop:prices", "read")["scopes"] + scope("soul:shop:prices", "list")["scopes"]},
        )
    ],
    "scopes.change_without_effect": [
        Mistake(
            "reading that deletes",
            READ | scope("soul:shop:prices", "delete"),
            "/scopes/0/action",
            WRITE | scope("soul:shop:prices", "delete"),
        ),
        Mistake(
            "nothing that sends",
            scope("soul:mail:outbox", "send"),
            "/scopes/0/action",
            NET | scope("soul:mail:outbox", "send"),
        ),
    ],
}
