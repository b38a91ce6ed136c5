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
from tests.attacks.hostile_documents import (
    CONTAINED,
    ELSEWHERE,
    MANY,
    METADATA,
    OK,
    REFUSED,
    UNREADABLE,
    WANTED,
    describe,
    of_item,
)
from tests.egress.conftest import authority, engine_boxes, named, sandbox, service, shop_boxes  # noqa: F401  fixtures
from tests.egress.services import Service, answer_with, serving
from tests.egress.world import HOST, Authority
from tests.support.calls import assert_problem
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.attack, pytest.mark.usefixtures("shop_boxes")]

TOKEN = "t0ken-of-the-tenant-4711"
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
