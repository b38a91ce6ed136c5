"""Artifact resources: does an agent find and read over MCP what its calls have left, and nothing else?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.artifacts.description import DescribedArtifact
from invocations.artifacts.services import keep_artifacts
from invocations.mcp import artifact_resources
from invocations.models import Invocation
from tests.conftest import make_caller
from tests.support.entry_paths import at_the_door, modern_request, usual_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + bytes(4)


@pytest.fixture
def left(caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell) -> list[str]:
    """The ids of a text and a picture that a call of the agent has left."""
    enable()
    grant()
    caller.invoke("sample.tools.echo", {"text": "x"})
    described = [
        DescribedArtifact("notes.txt", "text/plain", b"two lines\nof text"),
        DescribedArtifact("dot.png", "image/png", PNG),
    ]
    return [each.wire_id for each in keep_artifacts(Invocation.objects.get(), described)]


def ask(caller: Caller, method: str, params: dict[str, Any] | None = None, *, modern: bool = True) -> dict[str, Any]:
    if modern:
        return at_the_door(*modern_request(caller, method, params)).body
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
    return at_the_door(body, usual_headers(caller)).body


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("modern", [True, False])
def test_what_was_left_is_listed_and_read_as_what_it_is(modern: bool, left: list[str], caller: Caller) -> None:
    text, picture = left
    listed = ask(caller, "resources/list", modern=modern)["result"]["resources"]
    assert [(each["name"], each["mimeType"]) for each in listed] == [
        ("dot.png", "image/png"),
        ("notes.txt", "text/plain"),
    ]
    addresses = {each["name"]: each["uri"] for each in listed}

    read = [
        ask(caller, "resources/read", {"uri": addresses[name]}, modern=modern)["result"]["contents"]
        for name in ("notes.txt", "dot.png")
    ]

    assert read == [
        [{"uri": addresses["notes.txt"], "mimeType": "text/plain", "text": "two lines\nof text"}],
        [{"uri": addresses["dot.png"], "mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}],
    ]
    assert list(Fact.objects.filter(kind="artifact.read").order_by("id").values_list("subject", flat=True)) == [
        text,
        picture,
    ]


@pytest.mark.req("TOOLS-32")
def test_a_signed_address_of_an_answer_names_the_same_one(left: list[str], caller: Caller, settings: Any) -> None:
    signed = f"{settings.TOOLHUB_PUBLIC_URL}/api/v1/artifacts/{left[0]}?tenant=ten_x&signature=y"

    assert ask(caller, "resources/read", {"uri": signed})["result"]["contents"][0]["text"] == "two lines\nof text"


@pytest.mark.req("TOOLS-32")
def test_what_is_somebody_elses_or_nowhere_is_not_found(
    left: list[str], caller: Caller, operator: Person, settings: Any
) -> None:
    other = make_caller(operator.by, "other")
    own = artifact_resources.build_address(left[0])
    elsewhere = [
        own.replace(settings.TOOLHUB_PUBLIC_URL, "https://elsewhere.example"),
        own[:-1] + "!",
        artifact_resources.build_address("art_" + "z" * 26),
        artifact_resources.build_address("art_0" + "l" * 25),
        "test://x",
        "http://[",
    ]

    assert ask(other, "resources/list")["result"]["resources"] == []
    for asking, uri in [(other, own), *((caller, each) for each in elsewhere)]:
        error = ask(asking, "resources/read", {"uri": uri})["error"]
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})
        assert ask(asking, "resources/read", {"uri": uri}, modern=False)["error"]["code"] == -32002
    assert not Fact.objects.filter(kind="artifact.read").exists()


@pytest.mark.req("TOOLS-32")
def test_what_is_too_large_for_a_message_is_fetched(
    left: list[str], caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_resources, "MAX_READ", 3)

    error = ask(caller, "resources/read", {"uri": artifact_resources.build_address(left[0])})["error"]

    assert "get it over HTTP" in error["message"]


@pytest.mark.req("TOOLS-32")
def test_who_may_not_read_calls_reads_no_artifacts(operator: Person) -> None:
    other = make_caller(operator.by, "other", scopes=("tools:read",))

    for method in ("resources/list", "resources/read", "resources/templates/list"):
        assert ask(other, method, {"uri": "x:y"})["error"]["details"]["missing"] == "invocations:read"


@pytest.mark.req("TOOLS-32")
def test_the_hub_offers_resources_and_no_subscription_to_them(caller: Caller, settings: Any) -> None:
    assert ask(caller, "server/discover")["result"]["capabilities"]["resources"] == {}
    (template,) = ask(caller, "resources/templates/list")["result"]["resourceTemplates"]
    assert template["uriTemplate"] == f"{settings.TOOLHUB_PUBLIC_URL}/api/v1/artifacts/{{artifact_id}}"
