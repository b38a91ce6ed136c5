"""Leaves: do leaves hold digests, ids and names, and nothing that somebody said?"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.leaves.call_begins import Begin
from evidence.leaves.call_ends import End
from evidence.models import Fact, Snapshot
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.value_keys import find_values_key
from kernel.canonical import canonicalize
from tests.support.calls import row_of
from tests.support.populated_tenant import make_things

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
NAMES = {
    "callback.made",
    "client.entered",
    "import.read",
    "issuer.trusted",
    "model.connected",
    "publisher_key.added",
    "secret.set",
    "server_account.requested",
    "sink.made",
}  # of things, not of people: what facts are found by
HUGE = 2**60 + 1
PERSON = "ann.example@example.org"


def leaf_of(row: Any, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(Fact.objects.get(invocation_id=row.pk, kind=kind).leaf))
    return found


@pytest.mark.req("SPEC-10", "SPEC-8", "TOOLS-21")
def test_what_people_write_anywhere_is_in_no_leaf(bell: Bell) -> None:
    """One of everything, with the same word in every text that somebody can read (tests/support/populated_tenant.py)."""
    things = make_things("leaves")

    facts = list(Fact.objects.filter(tenant_id=things.tenant.pk))
    found = {fact.kind for fact in facts if things.word.encode() in bytes(fact.leaf)}
    columns = {
        fact.kind for fact in facts if things.word in f"{fact.subject} {fact.actor_id} {fact.reason} {fact.tool}"
    }
    written = {word for fact in facts for word in evidence.open_free_text(fact).values()}

    assert (found, columns) == (NAMES, set())
    assert len({fact.kind for fact in facts}) > 30
    assert any(things.word in word for word in written)  # it is kept, sealed


@pytest.mark.req("SPEC-10")
def test_what_a_caller_and_a_tool_name_by_themselves_is_only_hashed(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    sources = [
        {"type": "ruleset", "name": "echo-rules", "version": "7"},
        {"type": "record", "name": PERSON, "version": "+86 138 0013 8000"},
    ]
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": PERSON}, report={"sources": sources}, stdout=PERSON)

    answer = caller.invoke(
        ECHO, {"text": PERSON}, request_id="ann.example", user_id=PERSON, session_id=PERSON, client={"app": PERSON}
    )

    row = row_of(answer)
    begin, end = leaf_of(row, "invocation.began"), leaf_of(row, "invocation.ended")
    assert not [
        fact for fact in Fact.objects.all() if b"ann.example" in bytes(fact.leaf) or b"8000" in bytes(fact.leaf)
    ]
    key = find_values_key(row)
    assert begin["data"]["request_id"] == fingerprint_under(key, b"ann.example")
    assert (end["data"]["sources"][0]["name"], end["data"]["sources"][0]["version"]) == ("echo-rules", "7")
    assert end["data"]["sources"][1]["name"] == fingerprint_under(key, PERSON.encode())
    guessed = hashlib.sha256(canonicalize(sources[1])).hexdigest()
    assert not [fact for fact in Fact.objects.all() if guessed.encode() in bytes(fact.leaf)]


@pytest.mark.req("SPEC-7", "TOOLS-21")
def test_numbers_that_json_of_the_internet_has_not_are_committed_to_as_raw_bytes(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable("echo", input_schema={"type": "object", "properties": {"number": {"type": "integer"}}}, output_schema={})
    grant()
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"number": HUGE}, report={})

    answer = caller.invoke(ECHO, {"number": HUGE})

    assert answer.json()["data"] == {"number": HUGE}
    row = row_of(answer)
    for kind, name in (("invocation.began", "input"), ("invocation.ended", "output")):
        said = leaf_of(row, kind)["data"][name]
        snapshot = Snapshot.objects.get(invocation_id=row.pk, kind=name)
        assert (said["alg"], said["commit"]) == ("sha256-raw", snapshot.commitment)
        plain = evidence._plain(snapshot)
        assert str(HUGE).encode() in plain  # to the last digit
        assert said["commit"] == "sha256:" + hashlib.sha256(plain).hexdigest()


@pytest.mark.req("TOOLS-18", "TOOLS-25", "SPEC-5")
def test_begin_binds_what_was_decided_and_end_what_came_of_it(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    tool = enable()
    grant(calls_limit=5)
    sandbox.outcome = RunOutcome(
        RunStatus.OK,
        value={"text": "y"},
        report={},
        stdout="said",
        image="sha256:" + "1" * 64,
        level="fresh",
        cpu_ms=3.2,
    )

    row = row_of(caller.invoke(ECHO, {"text": "x"}))

    begin, end = leaf_of(row, "invocation.began"), leaf_of(row, "invocation.ended")
    assert tool.current is not None
    assert (begin["v"], end["v"]) == (2, 2)
    assert begin["data"]["tool"]["build"] == end["data"]["tool"]["build"] == tool.current.build_digest
    assert begin["data"]["tool"]["manifest"] == tool.current.manifest_digest
    assert begin["data"]["profile"] == end["data"]["profile"] == row.profile_hash
    assert begin["data"]["policy"] == {"version": row.policy_version, "hash": row.policy_hash}
    assert (begin["data"]["level"], end["data"]["run"]["level"]) == ("fresh", "fresh")
    assert begin["data"]["budget"]["reserved"]["calls"] == 1
    assert end["data"]["budget"]["spent"]["cpu_ms"] == 4
    assert end["data"]["run"]["image"] == "sha256:" + "1" * 64
    sealed = {each.kind: each.commitment for each in Snapshot.objects.filter(invocation_id=row.pk)}
    told = {"input": begin["data"]["input"]["commit"]} | {
        name: end["data"][name]["commit"] for name in ("output", "logs")
    }
    assert told == sealed
    assert Begin.from_data(begin["data"]).to_data() == begin["data"]
    assert End.from_data(end["data"]).to_data() == end["data"]
