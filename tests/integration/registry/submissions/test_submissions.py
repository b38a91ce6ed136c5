"""Submissions: do developers bring packages, read what is found at its line, and see what is missing until calls come?"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from access.agents.services import disable_agent
from access.models import Grant
from invocations.service_levels.tool_report import load_tool_report
from kernel.database.connections import database_time
from registry.models import Capsule, Decision, ToolVersion
from registry.submissions.progress import list_progress
from registry.versions import services as registry
from tests.support.capsules import capsule, pem_of, shouting
from tests.support.sent_forms import SentForm
from unitools.capsules.signatures import sign

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
HELLO = '''\
def hello(name: str, language: str = "en") -> dict[str, str]:
    """Greets somebody by name."""
    return {"greeting": name}
'''


def file(content: bytes, name: str = "acme_voice.capsule") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def send_capsule(person: Person, content: bytes, **more: Any) -> Any:
    return person.client().post(reverse("submission_capsule"), {"capsule": file(content)} | more)


def send_python(person: Person, source: str = HELLO, **more: Any) -> Any:
    said = {"file": file(source.encode(), "hello.py"), "group": "greeting.words", "version": "1.0.0"}
    return person.client().post(reverse("submission_python"), said | more)


def read_form(answer: Any, action: str) -> dict[str, str]:
    page = answer.content.decode()
    form = page.partition(f'action="{reverse(action)}"')[2].partition("</form>")[0]
    return {name: value for name, value in SentForm(form).values.items() if name != "file"}


@pytest.mark.req("CARD-3", "TOOLS-6")
def test_a_capsule_is_checked_previewed_and_submitted_with_nothing_kept_in_between(developer: Person) -> None:
    content = capsule().data

    checked = send_capsule(developer, content)

    page = checked.content.decode()
    assert checked.status_code == 200
    assert "It may be submitted" in page
    assert "What a reviewer will see" in page
    assert not Capsule.objects.exists()
    kept = read_form(checked, "submission_capsule")
    other = send_capsule(developer, capsule(shouting("2.0.0")).data, **kept, submit="1")
    assert "This is another file than the one that was checked." in other.content.decode()
    done = send_capsule(developer, content, **kept, submit="1")
    assert (done.status_code, done.url) == (302, reverse("submissions"))
    version = ToolVersion.objects.get()
    assert (version.submitted_by, version.build_digest) == (developer.by.id, capsule().digest)


@pytest.mark.req("TOOLS-6")
def test_findings_of_a_capsule_stand_at_the_lines_of_its_manifest(developer: Person) -> None:
    wrong = capsule(shouting(timeout_ms=-5, side_effect="Everything"))

    answer = send_capsule(developer, wrong.data, submit="1")

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "/timeout_ms" in page
    marked = [part.partition("</code>")[0] for part in page.split('class="marked">')[1:]]
    assert any("timeout_ms" in each for each in marked)
    assert any("side_effect" in each for each in marked)
    assert not ToolVersion.objects.exists()


@pytest.mark.req("TOOLS-6")
def test_what_is_no_capsule_or_is_signed_by_nobody_known_is_refused_with_its_problem(developer: Person) -> None:
    content = capsule().data
    kept = read_form(send_capsule(developer, content), "submission_capsule")

    no_capsule = send_capsule(developer, b"PK nothing")
    signed = send_capsule(developer, content, signature=file(sign(capsule(), pem_of()), "s.json"), **kept, submit="1")

    assert [no_capsule.status_code, signed.status_code] == [422, 422]
    assert not Capsule.objects.exists()


@pytest.mark.req("CARD-3", "TOOLS-6")
def test_a_python_file_becomes_a_version_that_its_author_may_correct_first(developer: Person) -> None:
    checked = send_python(developer)
    kept = read_form(checked, "submission_python")
    assert checked.status_code == 200, checked.content.decode()
    assert "greeting.words.hello" in kept["manifests"]
    assert not ToolVersion.objects.exists()

    corrected = kept | {
        "manifests": kept["manifests"].replace('"timeout_ms": 5000', '"timeout_ms": 2500'),
        "submit": "1",
    }
    done = developer.client().post(reverse("submission_python"), corrected)

    assert done.status_code == 302, done.content.decode()
    version = ToolVersion.objects.select_related("tool").get()
    assert (version.tool.name, version.view.timeout_ms) == ("greeting.words.hello", 2500)
    assert version.capsule_id is not None


@pytest.mark.req("TOOLS-6")
def test_findings_of_a_python_file_stand_beside_their_lines_and_keep_what_was_typed(developer: Person) -> None:
    answer = send_python(
        developer, "def hello(name: str) -> dict:\n    '''Greets.'''\n    return {'a': name\n", submit="1"
    )

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "This is not Python" in page
    assert 'id="source-1-3" class="marked"' in page
    assert "return" in read_form(answer, "submission_python")["source"]
    for said, field in (
        ({"group": "NoGroup"}, "group"),
        ({"manifests": "{"}, "manifests"),
        ({"file": "", "source": ""}, "file"),
    ):
        assert send_python(developer, **said).status_code == 422, field
    assert not ToolVersion.objects.exists()


@pytest.mark.req("TOOLS-6")
def test_of_a_python_file_with_too_many_lines_only_those_around_findings_are_drawn(developer: Person) -> None:
    source = "# above\n" * 20_000 + "def hello(name):\n    return {}\n" + "# below\n" * 5_000

    answer = send_python(developer, source)

    page = answer.content.decode().partition('id="source-1-h"')[2].partition("</pre>")[0]
    assert "20001  def hello(name):" in page
    assert [page.count(each) for each in ("# above", "# below")] == [3, 2]
    assert 'class="marked"' not in answer.content.decode()


@pytest.mark.req("TOOLS-6")
def test_a_wrong_number_is_found_before_anything_is_submitted(developer: Person, enable: Callable[..., Tool]) -> None:
    send_capsule(
        developer,
        capsule().data,
        **read_form(send_capsule(developer, capsule().data), "submission_capsule"),
        submit="1",
    )

    again = send_capsule(
        developer, capsule(shouting("1.0.0"), source="def run(text: str = '') -> dict:\n    return {}\n").data
    )

    assert again.status_code == 422
    assert "Version 1.0.0 is here already, with other content." in again.content.decode()
    assert ToolVersion.objects.count() == 1


def progress(version: ToolVersion, person: Person) -> list[str]:
    found = ToolVersion.objects.select_related("tool").prefetch_related("reviews").filter(pk=version.pk)
    (one,) = list_progress(found, by=person.by)
    return [part.what for part in one.missing]


@pytest.mark.req("CARD-3")
def test_my_submissions_say_what_is_missing_until_agents_call_it(
    submit: Callable[..., ToolVersion], developer: Person, operator: Person, caller: Caller, grant: Callable[..., Any]
) -> None:
    version = submit()
    steps = [progress(version, developer)]
    registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", acknowledged=[], by=operator.by)
    steps.append(progress(version, developer))
    registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="for a test", by=operator.by)
    steps.append(progress(version, developer))
    grant()

    page = developer.client().get(reverse("submissions")).content.decode()

    assert [len(each) for each in steps] == [3, 2, 1]
    assert steps[0] == [
        "1 approval is missing.",
        "It is not enabled yet.",
        "No grant covers it, so no agent may call it.",
    ]
    assert progress(version, developer) == []
    assert "Nothing: agents call it." in page
    assert reverse("submitted_tool", args=[version.tool.name]) in page


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("ends", ["it ran out", "its agent is disabled"])
def test_a_grant_that_is_not_in_force_covers_nothing(
    ends: str,
    enable: Callable[..., Tool],
    developer: Person,
    operator: Person,
    caller: Caller,
    grant: Callable[..., Any],
) -> None:
    version, given = enable().current, grant()
    assert version is not None
    assert progress(version, developer) == []

    if ends == "it ran out":
        Grant.objects.filter(pk=given.pk).update(expires_at=database_time() - timedelta(minutes=1))
    else:
        disable_agent(agent_id=caller.agent.pk, reason="for a test", by=operator.by)

    assert progress(version, developer) == ["No grant covers it, so no agent may call it."]


@pytest.mark.req("CARD-3")
def test_a_refused_version_shows_the_note_and_the_way_to_the_next(
    submit: Callable[..., ToolVersion], developer: Person, operator: Person
) -> None:
    version = submit()
    note = "Say what the text is for."
    registry.review_version(version_id=version.pk, decision=Decision.REFUSE, note=note, acknowledged=[], by=operator.by)

    page = developer.client().get(reverse("submissions")).content.decode()

    assert note in page
    assert reverse("submission_new") in page
    assert note not in operator.client().get(reverse("submissions")).content.decode()  # theirs, and of nobody else


@pytest.mark.req("CARD-3")
def test_settings_that_are_missing_are_named(
    enable_by_review: Callable[..., Tool], developer: Person, grant: Callable[..., Any]
) -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["rate"],
        "properties": {"rate": {"type": "string"}},
    }
    tool = enable_by_review(config_schema=schema)
    grant()
    assert tool.current is not None

    assert progress(tool.current, developer) == ["Settings or secrets of its installation are missing."]


@pytest.mark.req("CARD-3")
def test_the_page_of_a_tool_groups_errors_and_counts_versions(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    developer: Person,
    caller: Caller,
    tenant: Tenant,
) -> None:
    tool = enable()
    for _ in range(2):
        caller.invoke(tool.name, {})
    grant()
    caller.invoke(tool.name, {"text": "a"})

    report = load_tool_report(tenant_id=tenant.pk, tool=tool.name)
    page = developer.client().get(reverse("submitted_tool", args=[tool.name])).content.decode()

    assert report.calls == 3
    assert [(each.reason, each.calls) for each in report.errors] == [("AUTH.NO_GRANT", 2)]
    assert report.latency.p95_ms is not None
    assert report.versions[tool.current_id] == 3  # type: ignore[index]
    assert re.search(rf"\?from=[^&]+&amp;tool={tool.name}&amp;reason=AUTH.NO_GRANT", page)
    assert "Acme" in page


@pytest.mark.req("TOOLS-22")
def test_who_submits_nothing_has_no_such_pages_and_others_tools_are_not_there(
    enable: Callable[..., Tool], auditor: Person, stranger: Person
) -> None:
    tool = enable()

    assert auditor.client().get(reverse("submissions")).status_code == 403
    assert stranger.client().get(reverse("submitted_tool", args=[tool.name])).status_code == 404
