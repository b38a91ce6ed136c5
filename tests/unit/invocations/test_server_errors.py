"""Server errors: is a call that the tool's server calls an error sent again only where that does nothing twice?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from invocations.end.outcomes import classify_outcome
from invocations.models import State
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.mistakes.origins import served
from tests.support.manifests import manifest
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from registry.models import ToolVersion

WRITE = {"side_effect": "Write"}
KEYED = WRITE | {"idempotency": "keyed"}


@pytest.mark.req("BRING-2", "TOOLS-24")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param(served(side_effect="Read"), "DOMAIN.UPSTREAM_ERROR", id="reads"),
        pytest.param(served(**WRITE), "DOMAIN.SERVER_ERROR", id="writes"),
        pytest.param(served(**KEYED), "DOMAIN.SERVER_ERROR", id="is given no key, whatever an older version says"),
        pytest.param(KEYED, "DOMAIN.UPSTREAM_ERROR", id="is no server's, and is given its key"),
    ],
)
def test_an_error_of_a_server_is_sent_again_only_where_its_tool_reads(changes: dict[str, Any], reason: str) -> None:
    version = cast("ToolVersion", SimpleNamespace(view=Manifest(manifest(**changes))))
    outcome = RunOutcome(RunStatus.DOMAIN_ERROR, error_code="UPSTREAM_ERROR", error_message="There is no such city.")

    state, problem = classify_outcome(outcome, version=version)

    assert (state, problem.reason) == (State.FAILED, reason)
