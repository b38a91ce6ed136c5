"""Hostile documents: those of which no tool may come, and those of which one may that is like any other.

An operation that is wanted of each is called ``look``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.egress.world import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

OK = {"200": {"description": "it", "content": {"application/json": {"schema": {"type": "object"}}}}}
WANTED = "look"
MANY = 20_000
ELSEWHERE = "https://evil.example/"
METADATA = "http://169.254.169.254/latest/meta-data/"


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def describe(
    paths: dict[str, Any] | None = None, *, port: int = 443, openapi: str = "3.1.0", **more: Any
) -> dict[str, Any]:
    return {
        "openapi": openapi,
        "info": {"title": "Shop", "version": "3"},
        "servers": [{"url": f"https://{HOST}:{port}/v1"}],
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths or {},
    } | more


def looking(path: str = "/items", *, method: str = "get", port: int = 443, **said: Any) -> dict[str, Any]:
    """A document of the one operation that is wanted."""
    return describe({path: {method: {"operationId": WANTED, "responses": OK} | said}}, port=port)


def of_item(*parameters: dict[str, Any], port: int = 443) -> dict[str, Any]:
    item = {"name": "item", "in": "path", "required": True, "schema": {"type": "string"}}
    return looking("/items/{item}", port=port, parameters=[item, *parameters])


def taking(schema: Any, *, openapi: str = "3.1.0", **schemas: Any) -> dict[str, Any]:
    """An operation that takes this, and answers it."""
    content = {"application/json": {"schema": schema}}
    said = looking(method="post", requestBody={"required": True, "content": content})
    said["paths"]["/items"]["post"]["responses"] = {"200": {"description": "it", "content": content}}
    said["components"] = said["components"] | {"schemas": schemas}
    return said | {"openapi": openapi}


def laughing(levels: int, *, within: str = "") -> dict[str, Any]:
    """Each level has the next one ten times. ``within``: they are definitions of that schema."""
    place = f"{within}/$defs/" if within else ""
    found: dict[str, Any] = {
        f"l{number}": {"type": "object", "properties": dict.fromkeys("abcdefghij", ref(f"{place}l{number + 1}"))}
        for number in range(levels)
    } | {f"l{levels}": {"type": "string"}}
    return {within: {"$ref": f"#/components/schemas/{place}l0", "$defs": found}} if within else found


def referring(references: list[dict[str, str]]) -> dict[str, Any]:
    """Where nothing but the digest of the operation looks."""
    said: dict[str, Any] = {"x-all": references}
    return looking(**said)


def spell(word: str, number: int) -> str:
    """Another way to write the name: of the digits of the number each 1 escapes a letter."""
    return "".join(f"%{ord(letter):02x}" if number >> place & 1 else letter for place, letter in enumerate(word))


def spelled(count: int, size: int) -> dict[str, Any]:
    """One definition of that size, by as many names as there are."""
    word = "abcdefghijklmnop"
    found = referring([ref(spell(word, number)) for number in range(count)])
    found["components"] = found["components"] | {"schemas": {word: {"description": "x" * size}}}
    return found


def spelled_within(count: int) -> dict[str, Any]:
    """A place that is named by as many names, all of which it holds."""
    word = "abcdefghijklmnop"
    found = referring([ref(word)])
    within = {"x-all": [ref(spell(word, number)) for number in range(count)]}
    found["components"] = found["components"] | {"schemas": {word: within}}
    return found


def many_forms(count: int, size: int) -> Iterator[tuple[str, Any]]:
    """Forms of JSON, each of which has a file behind many properties."""
    for number in range(count):
        properties: dict[str, Any] = {f"p{n}": {} for n in range(size)}
        properties["photo"] = {"type": "string", "format": "binary"}
        yield f"application/x{number}+json", {"schema": {"type": "object", "properties": properties}}


def nested(levels: int, size: int) -> dict[str, Any]:
    """Places within places, each of which is named."""
    deep: Any = {"description": "x" * size}
    for _ in range(levels):
        deep = {"a": deep}
    names = ["/a" * number for number in range(levels)]
    found = referring([{"$ref": f"#/components/x-deep{name}"} for name in names])
    found["components"] = found["components"] | {"x-deep": deep}
    return found


def numbered(count: int) -> dict[str, Any]:
    """Definitions that are called what the second, third … of one name would be."""
    names = [f"A_{number}" for number in range(2, count)]
    properties = {f"p{number}": ref(name) for number, name in enumerate([*names, "A", "%41"])}
    schemas = {name: {"type": "string"} for name in [*names, "A"]}
    return answering({"type": "object", "properties": properties}, **schemas)


def answering(schema: Any, **schemas: Any) -> dict[str, Any]:
    said = looking(responses={"200": {"description": "it", "content": {"application/json": {"schema": schema}}}})
    said["components"] = said["components"] | {"schemas": schemas}
    return said


def answering_always(schema: Any) -> dict[str, Any]:
    """The one answer, by every status of success."""
    said = looking(responses={str(status): {"$ref": "#/components/responses/a"} for status in range(200, 300)})
    content = {"application/json": {"schema": schema}}
    said["components"] = said["components"] | {"responses": {"a": {"description": "", "content": content}}}
    return said


def lined(count: int) -> dict[str, Any]:
    """Each definition is the next one."""
    schemas: dict[str, Any] = {f"a{number}": ref(f"a{number + 1}") for number in range(count)}
    return taking(ref("a0"), **schemas | {f"a{count}": {}})


def served_by(*servers: dict[str, Any]) -> dict[str, Any]:
    return looking() | {"servers": list(servers)}


def with_text(said: dict[str, Any], text: str) -> dict[str, Any]:
    """The same where a key is asked for, and each property of the body has this text."""
    said["components"] |= {"schemas": {"a": {"type": "string", "description": text}}}
    return said


def having(count: int, **said: Any) -> dict[str, Any]:
    """A body that is so many times all of one definition."""
    return taking({"allOf": [ref("a")] * count}, a={"type": "object", "properties": {"p": {"type": "string"}}} | said)


def formed(headers: dict[str, Any], *, forms: dict[str, Any] | None = None) -> dict[str, Any]:
    """A form of one part with these headers, beside other forms of the body."""
    photo = {"type": "string", "format": "binary"}
    form = {"schema": {"type": "object", "properties": {"photo": photo}}, "encoding": {"photo": {"headers": headers}}}
    return looking(method="post", requestBody={"content": {"multipart/form-data": form} | (forms or {})})


def varied(**variable: Any) -> dict[str, Any]:
    return served_by({"url": "https://{where}.example.org/v1", "variables": {"where": variable}})


# What is no document, or one of which nothing is read.
UNREADABLE = {
    "aliases that laugh": b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nopenapi: 3.1.0\npaths: {}\n",
    "an alias of itself": b"openapi: 3.1.0\npaths: &a\n  /x: *a\n",
    "an alias that is merged": b"openapi: 3.1.0\nx: &x {a: 1}\npaths:\n  <<: *x\n",
    "a tag of Python": b"openapi: 3.1.0\npaths: !!python/object/apply:os.system [id]\n",
    "YAML without end": b"openapi: 3.1.0\npaths: {}\nx: " + b"[" * 50_000,
    "YAML of a million values": b"openapi: 3.1.0\npaths: {}\nx: [" + b"1," * 1_000_000 + b"]",
    "JSON without end": b'{"openapi": "3.1.0", "x": ' + b"[" * 200_000,
    "a path twice": b'{"openapi": "3.1.0", "paths": {"/a": {}, "/a": {}}}',
    "a number of a million digits": b'{"openapi": "3.1.0", "x": ' + b"9" * 1_000_000 + b', "paths": {}}',
}
# Operations that cannot be brought.
REFUSED: dict[str, Any] = {
    "laughs": taking(ref("l0"), **laughing(20)),
    "laughs in 3.0": taking(ref("l0"), openapi="3.0.3", **laughing(20)),
    "laughs within $defs": taking(ref("top"), **laughing(20, within="top")),
    "a circle of references": taking(ref("a"), a=ref("b"), b=ref("a")),
    "a reference to itself": taking(ref("a"), a={"$ref": "#/components/schemas/a"}),
    "all of itself": taking(ref("a"), a={"allOf": [ref("a"), ref("a")]}),
    "a line of references": lined(500),
    "references without end in a parameter": looking(parameters=[{"$ref": "#/paths/~1items/get/parameters/0"}]),
    "a wide body": taking({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}}),
    "a wide definition": taking(
        {"type": "object", "properties": {"v": ref("a")}},
        a={"type": "object", "properties": {f"p{n}": {"description": "x" * 200} for n in range(20_000)}},
    ),
    "places within places": nested(90, 4_000_000),
    "another file": of_item({"$ref": "other.yaml#/x"}),
    "another address": taking({"$ref": f"{ELSEWHERE}x.json"}),
    "a file of the hub": taking({"$ref": "file:///etc/passwd"}),
    "a variable that ends the host": varied(default="evil.example/"),
    "a variable that begins another host": varied(enum=["a", "me@evil.example#"]),
    "a variable that is any text": varied(default="a.evil.example?"),
    "a user before the host": served_by({"url": "https://api.example.org@evil.example/"}),
    "an address": served_by({"url": "https://169.254.169.254/v1"}),
    "an address in disguise": served_by({"url": "https://0xa9fea9fe/"}),
    "plain http": served_by({"url": METADATA}),
    "a way out of the server": served_by({"url": "https://api.example.org/v1/.."}),
    "a million addresses": served_by(
        {
            "url": "https://a.example.org/{a}/{b}/{c}",
            "variables": {name: {"enum": [f"v{n}" for n in range(100)]} for name in "abc"},
        }
    ),
    "addresses without end": served_by(*({"url": f"https://a{n}.example.org/" + "a" * 10_000} for n in range(100))),
    "an address of a hundred thousand variables": served_by(
        {"url": "https://a.example.org/" + "".join(f"{{v{n}}}" for n in range(MANY * 5))}
    ),
    "a hundred thousand names that are required of each of fifty": having(
        50, required=[f"r{n}" for n in range(MANY * 5)]
    ),
    "a hundred thousand headers of a part": formed({f"Content-{n}": {} for n in range(MANY * 5)}),
    "a hundred thousand media types": looking(
        responses={"200": {"description": "", "content": {f"text/x{n}": {"schema": {}} for n in range(100_000)}}}
    ),
    "a way out of the path": looking("/items/../admin"),
    "a way out of the path, escaped": looking("/items/%2e%2e/admin"),
    "a way out of the path, in disguise": looking("/items/..;/admin"),
    "another host in the path": looking("//evil.example/items"),
    "a second request in a header's name": looking(
        parameters=[{"name": "X-A: 1\r\nHost", "in": "header", "schema": {"type": "string"}}]
    ),
    "a name that nobody sees": looking(parameters=[{"name": "a\u200bb", "in": "query", "schema": {"type": "string"}}]),
}
# What can be brought, since nothing of it counts.
CONTAINED: dict[str, Any] = {
    "one place by ten thousand names": spelled(10_000, 3_000_000),
    "a place that holds twelve thousand names of itself": spelled_within(12_000),
    "a hundred thousand extensions of each of fifty": having(50, **{f"x-{n}": 0 for n in range(MANY * 5)}),
    "one wide property of each of fifty": having(49, properties={"p": {f"x-{n}": 0 for n in range(MANY * 5)}}),
    "a hundred forms with files, each of many properties": formed({}, forms=dict(many_forms(99, 2_000))),
    "one long text of each property": with_text(
        taking({"type": "object", "properties": {f"p{n}": ref("a") for n in range(200)}}), "x" * 2_000_000
    ),
    "names that are taken": numbered(3_000),
    "an answer that laughs": answering(ref("l0"), **laughing(20)),
    "one large answer by every status": answering_always(
        {"type": "object", "properties": {f"p{n}": {} for n in range(50_000)}}
    ),
    "a path by twenty thousand references": describe(
        {"/items": {"get": {"operationId": WANTED, "responses": OK}}, "/others": {"get": {"responses": OK}}}
        | {f"/i{n}": {"$ref": "#/paths/~1others"} for n in range(MANY)}
    ),
}
