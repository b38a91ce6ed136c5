"""Hostile documents: what an OpenAPI document may hold, is it refused with what to do or contained, and is the next tool right?

After each an innocent service's operation is brought by the same way, reviewed, granted and called through the hub.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from registry.imports.models import Import
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.secrets import services as secrets
from registry.tools import lifecycle
from tests.egress.conftest import authority, engine_boxes, named, sandbox, service, shop_boxes  # noqa: F401  fixtures
from tests.egress.services import Service, answer_with, serving
from tests.egress.world import HOST, Authority
from tests.support.calls import assert_problem
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.attack, pytest.mark.usefixtures("shop_boxes")]

TOKEN = "t0ken-of-the-tenant-4711"
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
FRAMING = ("Host", "Content-Length", "Transfer-Encoding", "Connection", "Authorization", "X-Forwarded-Host", "Cookie")
LEADS_OUT = (
    "..",
    ".",
    "../admin",
    "%2e%2e",
    "%2E%2e%2Fadmin",
    "%252e%252e",
    "a/b",
    "a%2fb",
    "a\\b",
    "..;",
    "a?b",
    "a#b",
)
REDIRECTS = ("301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect")


CPU_S = 10  # of which none takes a half
ROOM_BYTES = 512 * 1024 * 1024  # of addresses: what Python itself maps is some of it
DRAFTER = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
resource.setrlimit(resource.RLIMIT_AS, ({ROOM_BYTES}, {ROOM_BYTES}))
from unitools.brought_operations import draft_operations
from unitools.openapi.documents import read_document
from unitools.openapi.operations import Choices
document = read_document(sys.stdin.buffer.read())
found = draft_operations(document, list(document.operations.values())[:1], "service.hostile", Choices())
print(len(found.drafts), len(found.refusals))
"""


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("name", [*REFUSED, *CONTAINED])
def test_no_document_takes_more_time_or_memory_than_a_process_has_for_it(name: str) -> None:
    said = (REFUSED | CONTAINED)[name]

    run = subprocess.run(
        [sys.executable, "-c", DRAFTER], input=json.dumps(said).encode(), capture_output=True, check=False, timeout=300
    )

    assert run.returncode == 0, run.stderr.decode()[-2000:]
    assert run.stdout.split() == ([b"0", b"1"] if name in REFUSED else [b"1", b"0"])


@pytest.fixture
def bring(caller: Caller) -> Callable[..., Any]:
    """``bring(document, name)``: as a program does it over REST."""

    def make(said: dict[str, Any] | bytes, *names: str, group: str = "service.hostile") -> Any:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        source = {"document": base64.b64encode(data).decode(), "group": group, "secrets": ["SHOP_TOKEN"]}
        return caller.post("/imports/document", source | {"wanted": list(names)})

    return make


@pytest.fixture
def use(bring: Callable[..., Any], caller: Caller, operator: Person, grant: Callable[..., Any]) -> Callable[..., str]:
    """``use(document)``: its operation is brought, reviewed, enabled, set up and granted; the tool's id."""

    def make(said: dict[str, Any], *, group: str = "service.hostile") -> str:
        put_in_force(permit())
        made = bring(said, WANTED, group=group)
        assert made.status_code == 201, made.content
        assert made.json()["data"]["refusals"] == []
        submitted = caller.post(f"/imports/{made.json()['data']['id']}/submit", {})
        assert submitted.status_code == 201, submitted.content
        [each] = submitted.json()["data"]["versions"]
        tool = str(each["tool"])
        version = ToolVersion.objects.get(tool__name=tool)
        reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
        lifecycle.enable_tool(name=tool, version_id=version.pk, reason="x", by=operator.by)
        secrets.set_secret(name="token", value=TOKEN, by=operator.by)
        values = Setup(secrets={"SHOP_TOKEN": "token"})
        installations.configure_installation(name=tool, values=values, reason="x", by=operator.by)
        grant(tools=tool)
        return tool

    return make


@pytest.fixture
def check_innocent(use: Callable[..., str], caller: Caller, service: Service) -> Callable[[], None]:  # noqa: F811
    """An innocent service is brought and called."""

    def check() -> None:
        tool = use(of_item(port=service.port), group="service.innocent")
        answer = caller.invoke(tool, {"item": "a b"})
        assert answer.status_code == 200, answer.json()
        assert answer.json()["data"] == {"status": 200, "body": {"ok": True}}
        [heard] = service.heard
        assert heard.startswith(b"GET /v1/items/a%20b HTTP/1.1\r\n")
        assert f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode() in heard

    return check


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_is_a_bomb_is_refused_with_what_to_do(
    data: bytes, bring: Callable[..., Any], check_innocent: Callable[[], None]
) -> None:
    answer = bring(data, WANTED)

    error = assert_problem(answer, 422, "IMPORT.SOURCE_UNFIT")["error"]
    assert error["remedy"]
    [finding] = error["details"]["findings"]
    assert finding["pointer"].startswith("/")
    assert finding["fix"]
    assert not Import.objects.exists()
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("said", REFUSED.values(), ids=REFUSED.keys())
def test_an_operation_that_is_a_bomb_or_leads_out_is_refused_with_its_place_and_what_to_do(
    said: dict[str, Any], bring: Callable[..., Any], check_innocent: Callable[[], None]
) -> None:
    answer = bring(said, WANTED)

    assert answer.status_code == 201, answer.content
    made = answer.json()["data"]
    assert made["drafts"] == []
    [refusal] = made["refusals"]
    assert refusal["name"] == WANTED
    assert refusal["pointer"].startswith("/")
    assert refusal["message"]
    assert refusal["remedy"]
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("said", CONTAINED.values(), ids=CONTAINED.keys())
def test_what_multiplies_where_nothing_counts_makes_a_draft_like_any_other(
    said: dict[str, Any], bring: Callable[..., Any], check_innocent: Callable[[], None]
) -> None:
    made = bring(said, WANTED).json()["data"]

    assert made["refusals"] == []
    [draft] = made["drafts"]
    assert len(json.dumps(draft["document"])) < 100_000
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6")
def test_of_twenty_thousand_operations_none_is_taken_that_nobody_chose(
    bring: Callable[..., Any], caller: Caller, check_innocent: Callable[[], None]
) -> None:
    said = describe({f"/p{n}": {"get": {"operationId": f"op{n}", "responses": OK}} for n in range(MANY)})

    made = bring(said).json()["data"]
    at = f"/imports/{made['id']}"
    page = caller.get(f"{at}/offers?limit=50").json()["data"]
    too_many = caller.post(f"{at}/choose", {"names": [f"op{n}" for n in range(51)]})
    chosen = caller.post(f"{at}/choose", {"names": [f"op{MANY - 1}"]})

    assert (made["offered"], made["drafts"]) == (MANY, [])
    assert (len(page["offers"]), page["next"] is not None) == (50, True)
    assert too_many.status_code == 422
    assert [each["name"] for each in chosen.json()["data"]["drafts"]] == [f"op{MANY - 1}"]
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6", "TOOLS-16")
def test_what_frames_a_request_is_no_argument_and_never_an_agents(
    use: Callable[..., str],
    caller: Caller,
    authority: Authority,  # noqa: F811
    check_innocent: Callable[[], None],
) -> None:
    parameters = [{"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in FRAMING]
    with serving(authority.server_context(HOST)) as hostile:
        tool = use(of_item(*parameters, port=hostile.port))
        for name in FRAMING:
            refused = caller.invoke(tool, {"item": "a", name: "evil.example"})
            assert_problem(refused, 422, "SCHEMA.VALIDATION_FAILED")
        assert hostile.connections == 0
        answer = caller.invoke(tool, {"item": "a"})

    assert answer.status_code == 200, answer.json()
    [version] = ToolVersion.objects.filter(tool__name=tool)
    assert list(version.view.input_schema["properties"]) == ["item"]
    [heard] = hostile.heard
    lines = heard.decode().lower().split("\r\n")
    assert f"host: {HOST}:{hostile.port}" in lines
    assert f"authorization: bearer {TOKEN}".lower() in lines
    assert not any(line.startswith(("content-length", "transfer-encoding", "x-forwarded", "cookie")) for line in lines)
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6", "TOOLS-16")
def test_a_value_that_leads_out_of_the_path_is_refused_before_anything_is_asked(
    use: Callable[..., str],
    caller: Caller,
    authority: Authority,  # noqa: F811
    check_innocent: Callable[[], None],
) -> None:
    with serving(authority.server_context(HOST)) as hostile:
        tool = use(of_item(port=hostile.port))
        for value in LEADS_OUT:
            error = assert_problem(caller.invoke(tool, {"item": value}), 422, "DOMAIN.INVALID_ARGUMENT")["error"]
            assert "item" in error["message"]

    assert hostile.connections == 0
    check_innocent()


@pytest.mark.req("BRING-1", "SVC-6", "TOOLS-16")
@pytest.mark.parametrize("to", ["another service", ELSEWHERE, METADATA])
def test_a_redirect_is_followed_nowhere(
    to: str,
    use: Callable[..., str],
    caller: Caller,
    authority: Authority,  # noqa: F811
    check_innocent: Callable[[], None],
) -> None:
    context = authority.server_context(HOST)
    with serving(context) as other, serving(context) as hostile:
        place = f"https://{HOST}:{other.port}/v1/items/a" if to == "another service" else to
        hostile.answers = [answer_with(b"go there", status=status, location=place) for status in REDIRECTS]
        tool = use(of_item(port=hostile.port))
        for _ in REDIRECTS:
            answer = caller.invoke(tool, {"item": "a"})
            assert assert_problem(answer, 502, "SERVICE.REDIRECTED")["error"]["remedy"]
            assert place not in answer.content.decode()

    assert (hostile.connections, other.connections) == (len(REDIRECTS), 0)
    check_innocent()
