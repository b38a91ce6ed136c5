"""Trials of versions under review, as tests ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse

from invocations.replays.models import Replay
from invocations.trials.services import request_trial
from kernel.ids import decode
from tests.support.replays import work_through
from tests.support.sent_forms import SentForm

if TYPE_CHECKING:
    from registry.models import ToolVersion
    from tests.conftest import Person

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 20}},
    "required": ["text"],
    "additionalProperties": False,
}


def see(person: Person, address: str) -> str:
    answer = person.client().get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def send(person: Person, version: ToolVersion, **typed: str) -> Any:
    """What a browser sends of the form, with some of it typed."""
    address = reverse("trial_new", args=[version.pk])
    sent = SentForm(see(person, address).partition("<main")[2]).values | typed
    return person.client().post(address, sent)


def find_trial(answer: Any) -> Replay:
    assert answer.status_code == 302, answer.content.decode()
    return Replay.objects.get(pk=decode("rpl", answer.url.rpartition("/")[2]))


def try_version(version: ToolVersion, *, by: Person, **arguments: Any) -> Replay:
    row = request_trial(version_id=version.pk, arguments=arguments, by=by.by)
    work_through()
    row.refresh_from_db()
    return row
