"""Trial rights: who may have a version tried, when, and what do others see of it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from access.halts.services import throw_halt
from access.members.services import end_membership
from access.models import Reach
from access.roles import Role
from invocations.replays.labels import WHY
from invocations.replays.models import Replay
from invocations.replays.services import cancel_replay
from invocations.trials.services import MOST_OWN, request_trial
from kernel.principal import Principal
from kernel.problems import Conflict
from registry.models import Decision
from registry.problems import OwnSubmission
from registry.versions.services import review_version, submit_version
from tests.conftest import make_person
from tests.support.manifests import manifest
from tests.support.replays import work_through
from tests.support.sent_forms import SentForm
from tests.support.trials import see, send, try_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from invocations.sandbox.base import Sandbox
    from registry.models import ToolVersion
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-15")
def test_who_wrote_a_version_has_it_tried_by_nobody_less_than_another_reviewer(
    waiting: ToolVersion, developer: Person, auditor: Person, tenant: Tenant, submit: Callable[..., ToolVersion]
) -> None:
    author = make_person(tenant, "ada", Role.OPERATOR, Role.DEVELOPER)
    own = submit_version(document=manifest("echo"), by=author.by)

    with pytest.raises(OwnSubmission):
        request_trial(version_id=own.pk, arguments={"text": "x"}, by=author.by)
    page = see(author, reverse("trial_new", args=[own.pk]))
    assert "stand behind this version" in page
    assert "Run in the sandbox" not in page
    assert reverse("trial_new", args=[own.pk]) not in see(author, reverse("review", args=[own.pk]))
    for person in (developer, auditor):
        assert person.client().get(reverse("trial_new", args=[waiting.pk])).status_code == 403


@pytest.mark.req("CARD-3")
def test_another_reviewer_sees_how_a_trial_went_and_not_its_values(
    waiting: ToolVersion, reviewer: Person, operator: Person, docker: Sandbox
) -> None:
    row = try_version(waiting, by=reviewer, text="mine alone")

    page = see(operator, reverse("review", args=[waiting.pk]))

    assert row.wire_id[-6:] in page
    assert "mine alone" not in page
    assert operator.client().get(reverse("trial", args=[waiting.pk, row.pk])).status_code == 404
    assert "Try a version with written arguments" in see(operator, reverse("replay", args=[row.pk]))
    assert "Try a version with written arguments" in see(operator, reverse("replays"))


@pytest.mark.req("TOOLS-15")
def test_a_version_that_was_decided_is_tried_no_more(
    waiting: ToolVersion, reviewer: Person, operator: Person, docker: Sandbox
) -> None:
    row = request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)
    review_version(version_id=waiting.pk, decision=Decision.REFUSE, note="It is not what was agreed.", by=operator.by)

    work_through()

    row.refresh_from_db()
    assert (row.verdict, row.result["why"], row.result["state"]) == ("cannot", "version_refused", "")
    assert "The version was refused by its reviewer" in see(reviewer, reverse("trial", args=[waiting.pk, row.pk]))
    with pytest.raises(Conflict):
        request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)


def _leave(reviewer: Person, waiting: ToolVersion, operator: Person) -> None:
    by = Principal.system("test", tenant_id=reviewer.by.tenant_id)
    end_membership(user_id=reviewer.user.pk, role=Role.REVIEWER, by=by)


def _disable(reviewer: Person, waiting: ToolVersion, operator: Person) -> None:
    reviewer.user.is_active = False
    reviewer.user.save(update_fields=["is_active"])


def _approve(reviewer: Person, waiting: ToolVersion, operator: Person) -> None:
    review_version(version_id=waiting.pk, decision=Decision.APPROVE, note="It is what was agreed.", by=operator.by)


def _halt(reviewer: Person, waiting: ToolVersion, operator: Person) -> None:
    throw_halt(reach=Reach.TOOL, target=waiting.tool.name, reason="It sends mail.", by=operator.by)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("change", "why"),
    [(_leave, "may_not_try"), (_disable, "may_not_try"), (_approve, "version_decided"), (_halt, "halted")],
)
def test_whether_somebody_may_try_a_version_is_asked_again_when_it_is_run(
    waiting: ToolVersion,
    reviewer: Person,
    operator: Person,
    docker: Sandbox,
    change: Callable[[Person, ToolVersion, Person], None],
    why: str,
) -> None:
    row = request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)
    change(reviewer, waiting, operator)

    work_through()

    row.refresh_from_db()
    assert (row.verdict, row.result["why"], row.result["state"]) == ("cannot", why, "")
    assert WHY[why]


@pytest.mark.req("TOOLS-15")
def test_nothing_is_tried_while_a_kill_switch_stops_calls_of_it(
    waiting: ToolVersion, reviewer: Person, operator: Person
) -> None:
    address = reverse("trial_new", args=[waiting.pk])
    sent = SentForm(see(reviewer, address).partition("<main")[2]).values | {"t:/text": "x"}
    throw_halt(reach=Reach.TENANT, reason="Something is on fire.", by=operator.by)

    answer = reviewer.client().post(address, sent)

    assert answer.status_code == 422
    assert "Something is on fire." in answer.content.decode()
    assert not Replay.objects.exists()
    assert "Run in the sandbox" not in see(reviewer, address)


@pytest.mark.req("CARD-3")
def test_nobody_takes_the_replays_of_the_tenant_with_trials_of_their_own(
    waiting: ToolVersion, reviewer: Person, operator: Person
) -> None:
    rows = [request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by) for _ in range(MOST_OWN)]

    answer = send(reviewer, waiting, **{"t:/text": "x"})

    assert answer.status_code == 422
    assert f"{MOST_OWN} of your trials wait or run." in answer.content.decode()
    assert Replay.objects.count() == MOST_OWN
    request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=operator.by)
    cancel_replay(replay_id=rows[0].pk, by=operator.by)
    request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)


@pytest.mark.req("CARD-3")
def test_who_asked_for_a_trial_cancels_it_while_it_waits(
    waiting: ToolVersion, reviewer: Person, operator: Person
) -> None:
    row = request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)
    page, address = (reverse(name, args=[waiting.pk, row.pk]) for name in ("trial", "trial_cancel"))
    assert address in see(reviewer, page)
    assert operator.client().post(address).status_code == 404

    answer = reviewer.client().post(address)

    row.refresh_from_db()
    assert (answer.status_code, answer.headers["Location"], row.state) == (302, page, "cancelled")
    assert address not in see(reviewer, page)
    assert reviewer.client().post(address).status_code == 409
