"""Artifacts: what a call leaves beside its result is kept once, told to its caller, and opened only for whom it is meant."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from PIL import Image

from access.connections.services import end_connection
from evidence.models import Fact
from evidence.services import open_free_text
from invocations.artifacts import links
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.end.secret_leaks import withhold_leaks
from invocations.models import Invocation
from invocations.queue import outbox
from invocations.sandbox.base import LeftArtifact, RunOutcome, RunStatus
from tests.conftest import make_caller
from tests.support.calls import row_of
from tests.support.connections import make_connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
REPORT = LeftArtifact("report.csv", "text/csv", b"name,mail\nJohn,john@example.com\n")
PAGE = LeftArtifact("page.html", "text/html", b"<script>alert(1)</script>")


def png(size: int = 300) -> bytes:
    made = io.BytesIO()
    Image.effect_noise((size, size), 40).convert("RGB").save(made, "PNG")
    return made.getvalue()


PICTURE = LeftArtifact("picture.png", "image/png", png())


@pytest.fixture
def call(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """``call(artifact, …, obligations=[…], status=…)``: make a call that leaves them."""
    enable(side_effect="None", limits={"artifacts": 5})
    grant()

    def make(*artifacts: LeftArtifact, obligations: list[dict[str, Any]] | None = None, **outcome: Any) -> Any:
        def send(invocation_id: UUID, work_class: str) -> None:
            Invocation.objects.filter(pk=invocation_id).update(obligations=obligations or [])
            bell.ring(invocation_id, work_class)

        monkeypatch.setattr(outbox, "send_wake_up", send)
        sandbox.outcome = replace(RunOutcome(RunStatus.OK, value={}, artifacts=artifacts), **outcome)
        return caller.invoke(ECHO, {})

    return make


def end_of(answer: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended").leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data


def said_of(answer: Any) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = answer.json()["call"]["artifacts"]
    return said


def address_of(said: dict[str, Any]) -> str:
    split = urlsplit(said["url"])
    return f"{split.path}?{split.query}"


@pytest.mark.req("TOOLS-32")
def test_the_answer_says_what_was_left_and_the_fact_only_how_much(call: Callable[..., Any]) -> None:
    answer = call(REPORT, PICTURE)

    report, picture = said_of(answer)
    assert (report["name"], report["media_type"], report["bytes"]) == ("report.csv", "text/csv", len(REPORT.content))
    assert report["summary"] == {"lines": 2, "columns": 2}
    assert picture["summary"] == {"width": 300, "height": 300}
    end = end_of(answer)
    assert (end["artifacts"]["count"], end["artifacts"]["types"]) == (2, ["image", "text"])
    assert "report.csv" not in json.dumps(end)


@pytest.mark.req("TOOLS-32")
def test_an_answer_that_is_given_again_has_the_same_links(call: Callable[..., Any], caller: Caller) -> None:
    answer = call(REPORT)

    again = caller.get(f"/invocations/{answer.json()['call']['call_id']}")

    assert said_of(again) == said_of(answer)


@pytest.mark.req("TOOLS-32")
def test_the_same_content_is_stored_once_and_goes_with_its_last_artifact(
    call: Callable[..., Any], caller: Caller
) -> None:
    first, second = said_of(call(REPORT))[0], said_of(call(replace(REPORT, name="other.csv")))[0]
    assert (Artifact.objects.count(), ArtifactContent.objects.count()) == (2, 1)
    assert first["digest"] == second["digest"]

    assert caller.delete(f"/artifacts/{first['id']}").status_code == 204
    assert ArtifactContent.objects.count() == 1
    assert caller.delete(f"/artifacts/{second['id']}").status_code == 204
    assert ArtifactContent.objects.count() == 0
    assert Fact.objects.filter(kind="artifact.removed").count() == 2


@pytest.mark.req("TOOLS-32")
def test_nothing_of_it_is_stored_in_the_clear(call: Callable[..., Any]) -> None:
    call(REPORT)

    row = ArtifactContent.objects.get()
    assert b"john@example.com" not in bytes(row.ciphertext)


@pytest.mark.req("TOOLS-32")
def test_a_call_that_fails_leaves_nothing(call: Callable[..., Any]) -> None:
    call(REPORT, status=RunStatus.RAISED)

    assert not Artifact.objects.exists()


# Who gets them.


@pytest.mark.req("TOOLS-32", "TOOLS-21")
def test_the_agent_gets_it_with_its_key_and_anybody_by_the_link(call: Callable[..., Any], caller: Caller) -> None:
    answer = call(REPORT)
    (said,) = said_of(answer)

    by_key, by_link = caller.get(f"/artifacts/{said['id']}"), Client().get(address_of(said))

    for response in (by_key, by_link):
        assert response.content == REPORT.content
        assert response["Content-Disposition"] == 'attachment; filename="report.csv"'
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"].startswith("sandbox")
    facts = Fact.objects.filter(kind="artifact.read", invocation_id=row_of(answer).pk).order_by("id")
    assert [json.loads(bytes(fact.leaf))["data"]["via"] for fact in facts] == ["key", "link"]


@pytest.mark.req("CONN-1", "TOOLS-32")
def test_the_link_ends_with_the_connection_of_the_program_that_called(
    call: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    answer = call(REPORT)
    (said,) = said_of(answer)
    connection = make_connection(agent=caller.agent, member=operator.user, name="helper")
    Invocation.objects.filter(pk=row_of(answer).pk).update(connection_id=connection.pk)

    before = Client().get(address_of(said))
    end_connection(connection_id=connection.pk, by=operator.by)
    after = Client().get(address_of(said))

    assert (before.status_code, after.status_code) == (200, 403)
    assert caller.get(f"/artifacts/{said['id']}").status_code == 200  # with the key of the agent


@pytest.mark.req("TOOLS-32")
def test_what_a_browser_could_run_is_bytes_without_a_meaning(call: Callable[..., Any]) -> None:
    (said,) = said_of(call(PAGE))

    response = Client().get(address_of(said))

    assert said["media_type"] == "text/html"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")


@pytest.mark.req("TOOLS-32")
def test_a_picture_has_a_small_one(call: Callable[..., Any], caller: Caller) -> None:
    picture, report = said_of(call(PICTURE, REPORT))

    small = caller.get(f"/artifacts/{picture['id']}?thumbnail=1")

    assert small["Content-Type"] == "image/png"
    with Image.open(io.BytesIO(small.content)) as image:
        assert image.size == (256, 256)
    assert caller.get(f"/artifacts/{report['id']}?thumbnail=1").json()["error"]["reason"] == "ARTIFACT.UNKNOWN"


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("part", ["tenant", "agent", "expires", "signature"])
def test_a_link_of_which_anything_was_changed_opens_nothing(call: Callable[..., Any], part: str) -> None:
    (said,) = said_of(call(REPORT))
    split = urlsplit(said["url"])
    query = dict(parse_qsl(split.query))

    for changed in (query | {part: query[part][:-1] + ("1" if query[part][-1] != "1" else "2")}, query | {part: ""}):
        response = Client().get(split.path, changed)

        assert (response.status_code, response.json()["error"]["reason"]) == (403, "ARTIFACT.LINK_INVALID")
    assert not Fact.objects.filter(kind="artifact.read").exists()


@pytest.mark.req("TOOLS-32")
def test_a_link_is_good_for_one_artifact_only(call: Callable[..., Any]) -> None:
    one, other = said_of(call(REPORT, PAGE))

    response = Client().get(address_of(one).replace(one["id"], other["id"]))

    assert response.json()["error"]["reason"] == "ARTIFACT.LINK_INVALID"


@pytest.mark.req("TOOLS-32")
def test_a_link_is_good_for_a_day(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = said_of(call(REPORT))
    row = Invocation.objects.get()
    later = datetime.now(UTC) - timedelta(days=1, seconds=5)
    Invocation.objects.filter(pk=row.pk).update(finished_at=later, created_at=later)
    row.refresh_from_db()

    response = Client().get(
        urlsplit(links.build_artifact_link(said["id"], row))._replace(scheme="", netloc="").geturl()
    )

    assert (response.status_code, response.json()["error"]["reason"]) == (410, "ARTIFACT.LINK_EXPIRED")


@pytest.mark.req("TOOLS-32")
def test_the_link_of_an_agent_that_was_disabled_opens_nothing(call: Callable[..., Any], caller: Caller) -> None:
    (said,) = said_of(call(REPORT))
    caller.agent.disabled_at = datetime.now(UTC)
    caller.agent.save(update_fields=["disabled_at"])

    assert Client().get(address_of(said)).status_code == 403


@pytest.mark.req("TOOLS-21", "TOOLS-22")
def test_another_agent_gets_nothing(call: Callable[..., Any], operator: Person) -> None:
    (said,) = said_of(call(REPORT))
    robot = make_caller(operator.by, "robot")

    for response in (robot.get(f"/artifacts/{said['id']}"), robot.delete(f"/artifacts/{said['id']}")):
        assert (response.status_code, response.json()["error"]["reason"]) == (404, "ARTIFACT.UNKNOWN")
    assert Artifact.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_without_key_and_link_there_is_nothing(call: Callable[..., Any]) -> None:
    (said,) = said_of(call(REPORT))

    assert Client().get(f"/api/v1/artifacts/{said['id']}").status_code == 401


@pytest.mark.req("TOOLS-21")
def test_people_open_it_after_they_have_revealed_the_call_with_a_reason(
    call: Callable[..., Any], auditor: Person, operator: Person
) -> None:
    answer = call(PICTURE)
    (said,) = said_of(answer)
    page = f"/invocations/{answer.json()['call']['call_id']}"
    client = auditor.client()
    assert "picture.png" not in client.get(page).content.decode()
    assert client.get(f"/artifacts/{said['id']}").headers["Location"] == page

    shown = client.post(f"{page}/values", {"reason": "somebody has complained"}).content.decode()

    assert "picture.png" in shown
    word = shown.split("word=")[1].split('"')[0]
    response = client.get(f"/artifacts/{said['id']}?word={word}")
    assert response.content == PICTURE.content
    fact = Fact.objects.filter(kind="artifact.read").latest("id")
    assert open_free_text(fact) == {"reason": "somebody has complained"}
    assert operator.client().get(f"/artifacts/{said['id']}?word={word}").status_code == 403


# Room.


@pytest.mark.req("TOOLS-32")
def test_more_than_the_tenant_has_room_for_fails_the_call(call: Callable[..., Any], settings: Any) -> None:
    settings.TOOLHUB_FILES_MAX_MB = 0

    answer = call(REPORT)

    assert answer.json()["error"]["reason"] == "ARTIFACT.NO_ROOM"
    assert not Artifact.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_more_than_the_manifest_allows_fails_the_call(call: Callable[..., Any]) -> None:
    answer = call(
        status=RunStatus.RESULT_TOO_LARGE,
        error_code="artifacts",
        error_message="The tool left 9 artifacts, 5 are allowed.",
    )

    assert answer.json()["error"]["reason"] == "ARTIFACT.TOO_LARGE"


# Obligations.


@pytest.mark.req("TOOLS-32", "TOOLS-25")
def test_detectors_go_over_texts_that_are_left(call: Callable[..., Any], caller: Caller) -> None:
    notes = LeftArtifact("john@example.com today.json", "application/json", b'{"mobile": "4155552671", "n": 1}')

    answer = call(REPORT, notes, obligations=[{"action": "redact", "detector": "all"}])

    report, other = (caller.get(f"/artifacts/{said['id']}").content for said in said_of(answer))
    assert report == b"name,mail\nJohn,[redacted:email]\n"
    assert json.loads(other) == {"mobile": "[redacted:phone]", "n": 1}
    assert said_of(answer)[1]["name"] == "[redacted:email] today.json"
    assert {"action": "redact", "detector": "email", "count": 1, "in": "artifact"} in answer.json()["call"][
        "obligations"
    ]


@pytest.mark.req("TOOLS-32", "TOOLS-25")
@pytest.mark.parametrize(
    "left", [PICTURE, LeftArtifact("long.txt", "text/plain", b"x" * 1_100_000)], ids=["picture", "long"]
)
def test_what_cannot_be_looked_into_is_withheld(call: Callable[..., Any], left: LeftArtifact) -> None:
    degrade = {"action": "redact", "detector": "email", "on_failure": "degrade"}

    denied = call(REPORT, left, obligations=[{"action": "redact", "detector": "email"}])
    assert denied.json()["error"]["reason"] == "POLICY.OBLIGATION_FAILED"
    assert not Artifact.objects.exists()

    degraded = call(REPORT, left, obligations=[degrade])
    assert [said["name"] for said in said_of(degraded)] == ["report.csv"]
    assert "An artifact was withheld" in degraded.json()["warnings"][0]
    assert end_of(degraded)["obligations"][-1]["failed"] is True


@pytest.mark.req("TOOLS-32", "TOOLS-25")
def test_where_the_output_is_withheld_so_is_what_was_left(call: Callable[..., Any]) -> None:
    answer = call(REPORT, obligations=[{"action": "mask", "pointer": "/none", "on_failure": "degrade"}])

    assert (answer.json()["data"], said_of(answer)) == (None, [])
    assert not Artifact.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_a_secret_in_what_is_left_withholds_it() -> None:
    outcome = RunOutcome(RunStatus.OK, value={}, artifacts=(LeftArtifact("x.txt", "", b"the key is c2VjcmV0LXZhbHVl"),))

    kept, problem = withhold_leaks(outcome, {"KEY": "secret-value"})

    assert problem is not None
    assert (problem.details["where"], kept.artifacts) == (["artifacts"], ())


@pytest.mark.req("TOOLS-32")
def test_names_that_are_masked_alike_stay_apart_and_fit(call: Callable[..., Any]) -> None:
    long = " ".join(["1.1.1.1"] * 15)
    left = [replace(REPORT, name=name) for name in ("john@example.com", "jack@eagle.com", long)]

    answer = call(*left, obligations=[{"action": "redact", "detector": "all"}])

    assert answer.status_code == 200
    names = [each["name"] for each in said_of(answer)]
    assert names[:2] == ["[redacted:email]", "[redacted:email] (2)"]
    assert names[2].startswith("[redacted:ip] [redacted:ip]") and len(names[2]) <= 120


@pytest.mark.req("TOOLS-32")
def test_a_document_that_can_be_read_in_two_ways_is_withheld(call: Callable[..., Any]) -> None:
    twice = LeftArtifact("twice.json", "application/json", b'{"mail": "john@example.com", "mail": ""}')

    answer = call(twice, obligations=[{"action": "redact", "detector": "email"}])

    assert answer.json()["error"]["reason"] == "POLICY.OBLIGATION_FAILED"
    assert not Artifact.objects.exists()
