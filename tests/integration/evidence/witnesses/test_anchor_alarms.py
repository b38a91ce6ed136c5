"""Anchor alarms: do people see that a witness does not agree?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from evidence.integrity.alarms import list_alarms
from evidence.models import Anchor
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.mark.req("TOOLS-18")
def test_the_integrity_page_says_who_keeps_checkpoints_and_who_refuses_them(auditor: Person) -> None:
    write_facts(auditor.by.tenant_id, 3)
    seal_everything()
    page = auditor.client().get("/evidence/integrity").content.decode()
    assert "No copies of checkpoints are kept outside this hub" in page
    assert "No alarm." in page
    now = timezone.now()
    Anchor.objects.create(name="w.example", kind="witness", size=1, anchored_at=now, next_attempt_at=now)
    refused = Anchor.objects.create(
        name="v.example", kind="witness", next_attempt_at=now, refused_at=now, last_error="history was rewritten."
    )

    page = auditor.client().get("/evidence/integrity").content.decode()

    assert "w.example" in page
    assert "v.example: history was rewritten." in page
    assert "No alarm." not in page
    assert [alarm.kind for alarm in list_alarms(auditor.by.tenant_id)] == ["anchor"]
    refused.refused_at, refused.attempts, refused.anchored_at = None, 3, now - timedelta(hours=1)
    refused.save(update_fields=["refused_at", "attempts", "anchored_at"])
    [silent] = list_alarms(auditor.by.tenant_id)
    assert silent.since == refused.anchored_at
    refused.attempts = 0
    refused.save(update_fields=["attempts"])
    assert list_alarms(auditor.by.tenant_id) == []
