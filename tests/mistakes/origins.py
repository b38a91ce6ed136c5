"""Origins: mistakes in what lets a server of others answer."""

from __future__ import annotations

from typing import Any

from tests.mistakes.base import BROWSER, KEY, Changes, Mistake

DIGEST = "sha256:" + "a" * 64
ORIGIN = {
    "package": "a-server",
    "version": "1.0",
    "tool": "Echo-Text",
    "result": "content",
    "entry_digest": DIGEST,
    "listing_digest": DIGEST,
    "protocol": "2025-11-25",
}

OBJECT = {"name": "a_package:Find", "framework": "langchain", "package": "a-package", "version": "1.0"}
MADE_OF = {"object": OBJECT, "object_digest": DIGEST}
OWN = {"object": {"name": "shop:find", "framework": "function", "source_digest": DIGEST}, "object_digest": DIGEST}


def made(**more: Any) -> Changes:
    """A manifest whose calls an object answers that a function of its module makes."""
    return {"origin": MADE_OF, "dependencies": ["a_package==1.0"]} | more


def served(*environment: dict[str, str], **more: Any) -> Changes:
    """A manifest whose calls a server of others answers."""
    server = {"script": "a-server", "listing": "mcp_a", "environment": list(environment)}
    implementation = {"kind": "mcp_stdio", "server": server}
    return {"implementation": implementation, "origin": ORIGIN, "dependencies": ["a_server==1.0"]} | more


VALUE, SECRET = {"name": "MODE", "value": "x"}, {"name": "TOKEN", "secret": "API_KEY"}
SETTING = {"name": "ZONE", "config": "zone"}
ZONED = {"config_schema": {"type": "object", "properties": {"zone": {"type": "string"}}, "additionalProperties": False}}

SHA512 = f"sha512-{'A' * 86}=="
NPM_LINE = f"npm:node_modules/@a/b @a/b@1.0.0 {SHA512}"


def on_node(*lines: str, **more: Any) -> Changes:
    """A manifest whose calls a server of a package of npm answers."""
    server = {"script": "a-server", "listing": "mcp_a"}
    return {
        "implementation": {"kind": "mcp_stdio", "server": server},
        "origin": ORIGIN | {"package": "npm:@a/b", "version": "1.0.0"},
        "dependencies": ["npm:@a/b@1.0.0"],
        "dependency_lock": list(lines or (NPM_LINE,)),
    } | more


IN_JAVASCRIPT = {"kind": "mcp_stdio", "server": {"module": "a_server", "listing": "mcp_a"}}

ORIGINS: dict[str, list[Mistake]] = {
    "origin.missing": [
        Mistake("no word of it", served(origin=None), "/origin", served()),
        Mistake("an object", served(origin=MADE_OF), "/origin", served()),
    ],
    "origin.without_server": [Mistake("a function", {"origin": ORIGIN}, "/origin", made(origin=OWN))],
    "origin.not_a_dependency": [
        Mistake("not named", served(dependencies=["another==1.0"]), "/origin/package", served()),
        Mistake("another version", served(dependencies=["a-server==1.1"]), "/origin/package", served()),
        Mistake(
            "of npm", on_node(origin=ORIGIN | {"package": "npm:@a/b", "version": "1.1.0"}), "/origin/package", on_node()
        ),
        Mistake("nothing", made(origin=OWN, dependencies=[]), "/origin/object", made(origin=OWN)),
        Mistake("of an object", made(dependencies=["a_package==1.1"]), "/origin/object/package", made()),
    ],
    "origin.outside_sandbox": [
        Mistake("a plain process", served(requires_sandbox=False), "/requires_sandbox", served(requires_sandbox=True)),
        Mistake("an object", made(requires_sandbox=False), "/requires_sandbox", made(requires_sandbox=True)),
    ],
    "origin.image": [Mistake("a browser", served() | BROWSER, "/implementation/image", served())],
    "origin.keyed": [
        Mistake("of Python", served(idempotency="keyed"), "/idempotency", served()),
        Mistake("of npm", on_node(idempotency="keyed"), "/idempotency", on_node()),
    ],
    "origin.environment": [
        Mistake(
            "an unknown secret",
            served(SECRET),
            "/implementation/server/environment/0/secret",
            served(SECRET, secrets=[KEY]),
        ),
        Mistake(
            "an unknown setting",
            served(SETTING),
            "/implementation/server/environment/0/config",
            served(SETTING, **ZONED),
        ),
        Mistake("twice", served(VALUE, VALUE), "/implementation/server/environment/1/name", served(VALUE)),
    ],
    "origin.environment_reserved": [
        Mistake(
            "the interpreter's",
            served({"name": "PYTHONPATH", "value": "/w"}),
            "/implementation/server/environment/0/name",
            served(VALUE),
        ),
        *(
            Mistake(
                "whom TLS trusts and what it tells",
                served({"name": name, "value": "/w"}),
                "/implementation/server/environment/0/name",
                served(VALUE),
            )
            for name in ("CURL_CA_BUNDLE", "SSLKEYLOGFILE", "OPENSSL_CONF")
        ),
    ],
    "origin.environment_secret": [
        Mistake(
            name,
            served({"name": name, "value": "x"}),
            "/implementation/server/environment/0/value",
            served({"name": name, "secret": "API_KEY"}, secrets=[KEY]),
        )
        for name in ("API_TOKEN", "password", "SHOP_API_KEY", "PGPASSWORD")
    ]
    + [
        Mistake(
            "a number that is a password",
            served({"name": "DB_PASSWORD", "value": "482913"}),
            "/implementation/server/environment/0/value",
            served({"name": "DB_RETRIES", "value": "482913"}),
        ),
        Mistake(
            "a value that is one whatever its name",
            served({"name": "GITHUB", "value": f"ghp_{'aB3dE6gH9j' * 4}"}),
            "/implementation/server/environment/0/value",
            served(VALUE),
        ),
    ],
    "origin.environment_secret_name": [
        Mistake(
            f"{name}={value}",
            served({"name": name, "value": value}),
            "/implementation/server/environment/0/value",
            served({"name": "AUTH_MODE", "value": "none"}),
        )
        for name, value in (
            ("HTTP_AUTH", "off"),
            ("API_TOKEN", ""),
            ("OPENAI_API_KEY", "none"),
            ("CONTEXT_TOKENS", "128000"),
        )
    ],
    "origin.npm_script": [
        Mistake("a module", on_node(implementation=IN_JAVASCRIPT), "/implementation/server", on_node())
    ],
    "dependencies.npm_without_server": [
        Mistake("no server", {"dependencies": ["npm:@a/b@1.0.0"]}, "/dependencies", on_node()),
        Mistake("beside others", on_node(dependencies=["npm:@a/b@1.0.0", "idna==3.10"]), "/dependencies", on_node()),
    ],
    "dependencies.npm_unlocked": [Mistake("no lock", on_node(dependency_lock=[]), "/dependency_lock", on_node())],
    "dependencies.constraint": [
        Mistake("no version", served(dependency_constraints=["mcp"]), "/dependency_constraints/0", served()),
        Mistake(
            "an address",
            served(dependency_constraints=["mcp @ https://example.org/mcp.whl"]),
            "/dependency_constraints/0",
            served(dependency_constraints=["mcp<2"]),
        ),
        Mistake(
            "any text",
            served(dependency_constraints=["mcp===1"]),
            "/dependency_constraints/0",
            served(dependency_constraints=["mcp==1"]),
        ),
    ],
    "dependencies.constraints_alone": [
        Mistake("without any", {"dependency_constraints": ["mcp<2"]}, "/dependency_constraints")
    ],
    "dependencies.constraint_broken": [
        Mistake(
            "a newer one",
            served(
                dependency_constraints=["mcp<2"],
                dependency_lock=[f"{name} --hash={DIGEST}" for name in ("a-server==1.0", "mcp==2.0")],
            ),
            "/dependency_constraints/0",
            served(dependency_constraints=["mcp<2"]),
        )
    ],
}
