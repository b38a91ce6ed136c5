"""Trials at once: does a bound of trials hold for those who ask at the same moment?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from access.roles import Role
from invocations.replays.models import Replay
from invocations.trials.services import MOST_OWN, request_trial
from kernel.problems import Conflict
from tests.conftest import make_person
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import ToolVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.req("CARD-3")
def test_of_eight_trials_that_a_person_asks_for_at_once_no_more_begin_than_they_may_have(
    submit: Callable[..., ToolVersion], tenant: Tenant
) -> None:
    version, reviewer = submit(), make_person(tenant, "rita", Role.REVIEWER)

    found = at_once(8, lambda _: request_trial(version_id=version.pk, arguments={"text": "x"}, by=reviewer.by))

    assert sum(isinstance(each, Replay) for each in found) == Replay.objects.count() == MOST_OWN
    assert sum(isinstance(each, Conflict) for each in found) == 8 - MOST_OWN
