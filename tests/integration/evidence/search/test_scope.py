"""Scope: are facts found by the days and the people that somebody remembers?"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import timezone

from access.agents.services import create_agent
from evidence.models import ExportJob, Seal, Verification
from evidence.search.language import parse
from evidence.search.scope import FactScope
from tests.support.evidence_logs import seal_everything, signing_with

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


def test_days_and_people_are_said_in_the_search_language() -> None:
    scope = FactScope(date(2026, 11, 1), date(2026, 11, 2), "usr_7", "ann 7")

    query = scope.to_query("-kind:snapshot.read")

    assert str(parse(query)) == query
    assert query == (
        'actor:usr_7 user:"ann 7" after:2026-11-01T00:00:00+00:00 before:2026-11-03T00:00:00+00:00 -kind:snapshot.read'
    )
    assert FactScope(who="agt_1").to_query().startswith("agent:agt_1")
    assert FactScope().to_query() == ""


def test_the_last_day_that_there_is_has_no_end() -> None:
    assert FactScope(until=date.max).to_query() == ""
    assert FactScope(until=date.max - timedelta(days=1)).to_query() == "before:9999-12-31T00:00:00+00:00"


@pytest.mark.req("CARD-3", "CARD-6")
def test_a_log_is_verified_and_exported_by_day_and_person(
    operator: Person, second_operator: Person, auditor: Person
) -> None:
    for number, person in enumerate((operator, second_operator, operator)):
        create_agent(name=f"agent-{number}", by=person.by)
    with signing_with():
        seal_everything()
    today = timezone.localdate().isoformat()
    client = auditor.client()

    asked = client.post(reverse("verification_new"), {"since": today, "who": second_operator.by.id})
    too_late = client.post(reverse("verification_new"), {"since": timezone.localdate() + timedelta(days=1)})
    both = client.post(reverse("verification_new"), {"since": today, "start": "1"})

    row = Verification.objects.get(asked_by=auditor.by.id)
    leaves = Seal.objects.filter(fact__actor_id=second_operator.by.id).values_list("leaf_index", flat=True)
    assert (row.start, row.stop) == (min(leaves), max(leaves) + 1)
    assert f"who={second_operator.by.id}" in asked.headers["Location"]
    page = client.get(asked.headers["Location"]).content.decode()
    assert f"{reverse('export_new')}?since={today}&amp;who={second_operator.by.id}" in page
    assert (too_late.status_code, both.status_code) == (422, 422)

    form = client.get(reverse("export_new"), {"since": str(today), "who": str(second_operator.by.id)}).content.decode()
    client.post(reverse("export_new"), {"format": "csv", "since": today, "who": second_operator.by.id})
    assert f'value="{today}"' in form
    assert f'<option value="{second_operator.by.id}" selected>' in form
    assert ExportJob.objects.get().query.startswith(f"actor:{second_operator.by.id} after:{today}T00:00:00")
