"""Examples for the rules about limits, secrets, dependencies, versions and what answers hold."""

from __future__ import annotations

from tests.mistakes.base import BROWSER, KEY, NET, PROGRAM, WRITE, Changes, Mistake, giving, taking

MAKES_FILES = WRITE | {"capabilities": {"fs": [{"path": "/data/out", "actions": ["create"]}]}}
ARGUMENT = "/input_schema/properties/text"


def deprecating(**changes: str) -> Changes:
    return {"deprecations": [{"pointer": "", "since": "1.0.0", "advice": "Use another one."} | changes]}


def needing(*names: str) -> Changes:
    return {
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 200}},
            "additionalProperties": False,
        }
        | {"required": list(names)}
    }


def platform(text: str) -> Changes:
    return {"provider_compat": {"platform": text}}


def property_of(name: str) -> dict[str, object]:
    return {"type": "object", "properties": {name: {"type": "string"}}}


HASH = "a" * 64
MY_LIB, OTHER = f"my-lib==1 --hash=sha256:{HASH}", f"other==1 --hash=sha256:{HASH}"


def locking(*lines: str) -> Changes:
    return {"dependencies": ["my-lib==1"], "dependency_lock": list(lines)}


RUNNING: dict[str, list[Mistake]] = {
    "version.invalid": [
        Mistake("a zero before a number", {"version": "1.0.0-rc.01"}, "/version", {"version": "1.0.0-rc.1"})
    ],
    "version.major": [
        Mistake("no column holds it", {"version": "2147483648.0.0"}, "/version", {"version": "2147483647.0.0"})
    ],
    "concurrency.contradicted": [
        Mistake(
            "serial, three at a time",
            {"concurrency": "serial", "limits": {"concurrency": 3}},
            "/limits/concurrency",
            {"concurrency": "serial", "limits": {"concurrency": 1}},
        )
    ],
    "state.without_code": [
        Mistake(
            "outside the sandbox",
            {"state": {"kind": "files"}, "side_effect": "Read", "requires_sandbox": False},
            "/state",
            {"state": {"kind": "files"}, "side_effect": "Read"},
        )
    ],
    "state.beside_files": [
        Mistake(
            "files of both kinds",
            {
                "state": {"kind": "files"},
                "side_effect": "Read",
                "capabilities": {"fs": [{"path": "/data/a", "actions": ["read"]}]},
            },
            "/state",
            {"state": {"kind": "files"}, "side_effect": "Read"},
        )
    ],
    "state.without_effect": [
        Mistake(
            "keeps, and has no effect",
            {"state": {"kind": "files"}, "side_effect": "None"},
            "/side_effect",
            {"state": {"kind": "files"}, "side_effect": "Read"},
        )
    ],
    "limits.scratch_over_memory": [
        Mistake(
            "more scratch than memory",
            {"limits": {"memory_bytes": 33_554_432}, "capabilities": {"tmp": 67_108_864}},
            "/capabilities/tmp",
            {"capabilities": {"tmp": 67_108_864}},
        )
    ],
    "limits.idle_over_timeout": [
        Mistake(
            "as long as a call may take",
            {"timeout_ms": 5000, "limits": {"idle_ms": 5000}},
            "/limits/idle_ms",
            {"timeout_ms": 5000, "limits": {"idle_ms": 4999}},
        )
    ],
    "isolation.outside_sandbox": [
        Mistake("a level", {"isolation": "cold", "requires_sandbox": False}, "/isolation", {"requires_sandbox": False}),
        Mistake("by agent", {"isolate_by": "agent", "requires_sandbox": False}, "/isolate_by", {"isolate_by": "agent"}),
    ],
    "isolation.by_agent_anyway": [
        Mistake(
            "a box for each call",
            {"isolation": "single", "isolate_by": "agent"},
            "/isolate_by",
            {"isolation": "fresh", "isolate_by": "agent"},
        )
    ],
    "timeout.longer_than_connections": [
        Mistake("minutes", {"timeout_ms": 120_000}, "/timeout_ms", {"timeout_ms": 120_000, "async": True})
    ],
    "secrets.duplicate": [
        Mistake(
            "twice", NET | {"secrets": [KEY, KEY]}, "/secrets/1/name", NET | {"secrets": [KEY, KEY | {"name": "B"}]}
        )
    ],
    "secrets.without_network": [Mistake("for nobody", {"secrets": [KEY]}, "/secrets/0", NET | {"secrets": [KEY]})],
    "secrets.host_outside_net": [
        Mistake(
            "another host",
            NET | {"secrets": [KEY | {"hosts": ["api.example.org", "b.example.org"]}]},
            "/secrets/0/hosts/1",
            NET | {"secrets": [KEY | {"hosts": ["api.example.org"]}]},
        ),
        Mistake("every subdomain", NET | {"secrets": [KEY | {"hosts": ["*.example.org"]}]}, "/secrets/0/hosts/0", NET),
    ],
    "secrets.hosts_unsaid": [
        Mistake(
            "two hosts",
            {
                "side_effect": "Network",
                "capabilities": {"net": [{"host": "a.example"}, {"host": "b.example"}]},
                "secrets": [KEY],
            },
            "/secrets/0",
            {
                "side_effect": "Network",
                "capabilities": {"net": [{"host": "a.example"}, {"host": "b.example"}]},
                "secrets": [KEY | {"hosts": ["a.example"]}],
            },
        )
    ],
    "dependencies.unpinned": [
        Mistake("a range", {"dependencies": ["requests>=2"]}, "/dependencies/0"),
        Mistake("an address", {"dependencies": ["x @ https://example.org/x.whl"]}, "/dependencies/0"),
        Mistake(
            "no version", {"dependencies": ["requests==2.0 --hash=sha256:" + "a" * 64, "requests2"]}, "/dependencies/1"
        ),
        Mistake("every patch", {"dependencies": ["requests==2.*"]}, "/dependencies/0"),
        Mistake(
            "no version that Python knows",
            {"dependencies": ["requests==2.0-x-y"]},
            "/dependencies/0",
            {"dependencies": ["requests==2.0"]},
        ),
    ],
    "dependencies.duplicate": [
        Mistake("two spellings", {"dependencies": ["my-lib==1", "My_Lib==1"]}, "/dependencies/1")
    ],
    "dependencies.lock_line": [
        Mistake("no hash", locking("my-lib==1"), "/dependency_lock/0", locking(MY_LIB)),
        Mistake("an option", locking(MY_LIB, "--index-url https://example.org"), "/dependency_lock/1", locking(MY_LIB)),
        Mistake("an address", locking(f"x @ https://example.org/x.whl --hash=sha256:{HASH}"), "/dependency_lock/0"),
        Mistake("no version", locking(f"my-lib==1-x-y --hash=sha256:{HASH}"), "/dependency_lock/0"),
        Mistake("no marker", locking(f"my-lib==1 ; colour == 'red' --hash=sha256:{HASH}"), "/dependency_lock/0"),
    ],
    "dependencies.lock_duplicate": [
        Mistake(
            "two versions", locking(MY_LIB, MY_LIB.replace("==1", "==2")), "/dependency_lock", locking(MY_LIB, OTHER)
        )
    ],
    "dependencies.not_locked": [
        Mistake("another package", locking(OTHER), "/dependencies/0", locking(OTHER, MY_LIB)),
        Mistake(
            "another version",
            locking(MY_LIB.replace("==1", "==2")),
            "/dependencies/0",
            locking(MY_LIB.replace("==1", "==1.0")),
        ),
        Mistake(
            "another file",
            locking(MY_LIB) | {"dependencies": ["My_Lib==1 --hash=sha256:" + "b" * 64]},
            "/dependencies/0",
            locking(MY_LIB) | {"dependencies": [f"My_Lib==1 --hash=sha256:{HASH}"]},
        ),
    ],
    "dependencies.lock_alone": [
        Mistake("of nothing", {"dependency_lock": [MY_LIB]}, "/dependency_lock", locking(MY_LIB))
    ],
    "provider_compat.platform_invalid": [
        Mistake("no range", platform("new"), "/provider_compat/platform", platform(">=0.1"))
    ],
    "provider_compat.platform_other": [
        Mistake("a hub to come", platform(">=99"), "/provider_compat/platform", platform(">=0.1 <99"))
    ],
    "provider_compat.model_form": [
        Mistake(
            "no provider",
            {"provider_compat": {"models": ["gpt"]}},
            "/provider_compat/models/0",
            {"provider_compat": {"models": ["openai:gpt-4o", "anthropic:claude-4"]}},
        ),
        Mistake("a pattern", {"provider_compat": {"models": ["a:*"]}}, "/provider_compat/models/0"),
        Mistake("twice", {"provider_compat": {"models": ["a:b", "a:b"]}}, "/provider_compat/models/1"),
    ],
    "deprecations.pointer": [
        Mistake(
            "nothing there",
            deprecating(pointer="/input_schema/properties/gone"),
            "/deprecations/0/pointer",
            deprecating(pointer=ARGUMENT),
        ),
        Mistake("no pointer", deprecating(pointer="text"), "/deprecations/0/pointer", deprecating(pointer="")),
    ],
    "deprecations.duplicate": [
        Mistake(
            "twice",
            {"deprecations": deprecating()["deprecations"] * 2},
            "/deprecations/1/pointer",
            {"deprecations": deprecating()["deprecations"] + deprecating(pointer="/tags")["deprecations"]},
        )
    ],
    "deprecations.since": [
        Mistake("later than now", deprecating(since="1.0.1"), "/deprecations/0/since", deprecating(since="0.9.0")),
        Mistake("no version", deprecating(since="spring"), "/deprecations/0/since"),
    ],
    "deprecations.successor": [
        Mistake(
            "itself",
            deprecating(successor="sample.tools.echo", sunset="2030-01-01"),
            "/deprecations/0/successor",
            deprecating(successor="sample.tools.echo2", sunset="2030-01-01"),
        )
    ],
    "deprecations.sunset": [
        Mistake(
            "a day that is over",
            deprecating(sunset="2020-01-01"),
            "/deprecations/0/sunset",
            deprecating(sunset="2130-01-01"),
        ),
    ],
    "deprecations.sunset_of": [
        Mistake(
            "of a tag",
            deprecating(pointer="/tags", sunset="2130-01-01"),
            "/deprecations/0/sunset",
            deprecating(pointer=ARGUMENT, sunset="2130-01-01"),
        ),
    ],
    "deprecations.sunset_of_required": [
        Mistake(
            "of an argument that every call needs",
            deprecating(pointer=ARGUMENT, sunset="2130-01-01") | needing("text"),
            "/deprecations/0/sunset",
            deprecating(pointer=ARGUMENT, sunset="2130-01-01") | needing(),
        ),
    ],
    "name.of_id": [Mistake("another word", {"name": "reverb"}, "/name", {"name": "echo"})],
    "implementation.outside_sandbox": [
        Mistake(
            "a program beside the hub",
            PROGRAM | {"requires_sandbox": False},
            "/requires_sandbox",
            PROGRAM | {"requires_sandbox": True},
        )
    ],
    "implementation.dependencies_of_program": [
        Mistake("a package for Python", PROGRAM | {"dependencies": ["six==1.17.0"]}, "/dependencies", PROGRAM)
    ],
    "implementation.box_used_once": [
        Mistake("a program", PROGRAM | {"isolation": "fresh"}, "/isolation", PROGRAM | {"isolation": "cold"}),
        Mistake("a browser", BROWSER | {"isolation": "shared"}, "/isolation", BROWSER | {"isolation": "single"}),
    ],
    "limits.files": [
        Mistake("files that are never kept", MAKES_FILES, "/limits/files", MAKES_FILES | {"limits": {"files": 3}}),
    ],
}
ANSWERS: dict[str, list[Mistake]] = {
    "ttl.missing": [
        Mistake("said", {"quotes": ["stock"]}, "/ttl_seconds", {"quotes": ["stock"], "ttl_seconds": 0}),
    ],
    "ttl.suspected": [
        *(
            Mistake(f"named like a {what}", {"id": name}, "/ttl_seconds", {"id": name, "ttl_seconds": 5})
            for what, name in {
                "price": "shop.goods.get_quote",
                "stock level": "shop.goods.check_stock",
                "rate": "shop.shipping.rates",
                "route": "shop.travel.routes",
            }.items()
        ),
        Mistake(
            "the name of a package says nothing",
            {"id": "shop.goods.get_price"},
            "/ttl_seconds",
            {"id": "shop.prices.get_name"},
        ),
        Mistake("an answer", giving(property_of("unitPrice")), "/ttl_seconds", giving(property_of("priceless"))),
        Mistake("a tag", {"tags": ["in-stock"]}, "/ttl_seconds", {"tags": ["in-stock"], "ttl_seconds": 5}),
    ],
    "ttl.too_long": [
        Mistake(
            "a price of last week",
            {"quotes": ["price"], "ttl_seconds": 604_800},
            "/ttl_seconds",
            {"quotes": ["price"], "ttl_seconds": 86_400},
        )
    ],
    "output_repair.idle": [
        Mistake(
            "nothing is unknown to an open object",
            {"output_repair": ["wrap", "drop_unknown"]} | giving({"type": "object"}),
            "/output_repair/1",
            {"output_repair": ["drop_unknown"]} | giving({"type": "object", "additionalProperties": False}),
        )
    ],
    "data_classes.suspected": [
        Mistake(
            "an address",
            taking(emailAddress={}),
            "/input_schema/properties/emailAddress",
            taking(emailAddress={}) | {"data_classes": ["personal"]},
        ),
        Mistake("in Chinese", taking(手机号={}), "/input_schema/properties/手机号", taking(数量={})),
        Mistake(
            "an answer",
            giving({"items": property_of("iban")}),
            "/output_schema/items/properties/iban",
            giving({"items": property_of("iban")}) | {"data_classes": ["payment"], "safety_class": "Medium"},
        ),
        Mistake("where somebody is", taking(latitude={}, longitude={}), "/input_schema/properties/latitude", WRITE),
    ],
}
