"""Model prefixes: does a tenant's own text have versions that only those who manage models see and set, each with its fact?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evidence import services as evidence
from evidence.models import Fact
from kernel.canonical import compute_digest
from kernel.problems import Conflict, SchemaInvalid
from registry.model_prefixes.services import MAX_CHARACTERS, find_prefix, set_prefix
from registry.models import ModelPrefix
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
SAID = {"text": "  Be careful.\n", "reason": "for a test"}
NONE = {"version": 0, "text": "", "digest": None, "reason": None, "set_by": None, "set_at": None}


@pytest.mark.req("LLM-12")
def test_a_prefix_is_set_read_and_taken_away_over_rest_and_every_version_stays(caller: Caller) -> None:
    assert caller.get("/model-prefix").json()["data"] == NONE
    first = caller.put("/model-prefix", SAID)
    second = caller.put("/model-prefix", {"text": "", "reason": "not any more"})

    assert [first.status_code, second.status_code] == [200, 200]
    made = first.json()["data"]
    assert (made["version"], made["text"], made["digest"]) == (1, SAID["text"], compute_digest(SAID["text"]))
    assert (made["set_by"], made["reason"]) == (caller.agent.wire_id, "for a test")
    assert caller.get("/model-prefix").json()["data"]["version"] == 2
    listed = caller.get("/model-prefix/versions").json()["data"]
    assert [(each["version"], each["text"]) for each in listed["versions"]] == [(2, ""), (1, SAID["text"])]
    assert caller.get("/model-prefix/versions?limit=1").json()["data"]["next"]


@pytest.mark.req("LLM-12")
def test_each_version_has_a_fact_that_binds_its_text_and_does_not_quote_it(operator: Person) -> None:
    row = set_prefix(text="quokkaprefix", reason="as agreed", by=operator.by)

    fact = Fact.objects.get(kind="model_prefix.set")
    said = json.loads(bytes(fact.leaf))["data"]
    assert {"version": 1, "digest": row.digest, "characters": 12}.items() <= said.items()
    assert evidence.open_free_text(fact) == {"reason": "as agreed"}
    assert b"quokka" not in bytes(fact.leaf)


@pytest.mark.req("LLM-12")
def test_what_is_too_long_or_nothing_new_is_refused_and_makes_no_version(caller: Caller, operator: Person) -> None:
    with pytest.raises(Conflict):
        set_prefix(text="", reason="nothing there", by=operator.by)
    set_prefix(text="x" * MAX_CHARACTERS, reason="as long as may be", by=operator.by)
    with pytest.raises(Conflict):
        set_prefix(text="x" * MAX_CHARACTERS, reason="the same again", by=operator.by)
    with pytest.raises(SchemaInvalid):
        set_prefix(text="x" * (MAX_CHARACTERS + 1), reason="longer", by=operator.by)

    beyond = caller.put("/model-prefix", SAID | {"text": "x" * (MAX_CHARACTERS + 1)})
    assert_problem(beyond, 422, "SCHEMA.VALIDATION_FAILED")
    assert ModelPrefix.objects.count() == 1


@pytest.mark.req("LLM-12")
def test_a_tenant_has_its_own_and_sees_no_others(operator: Person, foreign_caller: Caller) -> None:
    set_prefix(text="ours", reason="for a test", by=operator.by)

    assert foreign_caller.get("/model-prefix").json()["data"] == NONE
    assert foreign_caller.get("/model-prefix/versions").json()["data"]["versions"] == []
    assert find_prefix(foreign_caller.by.tenant_id) is None
