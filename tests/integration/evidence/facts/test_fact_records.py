"""Fact records: is evidence written with what it witnesses, never changed, and free of values?"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction

from evidence import kinds
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import PausedTool
from evidence.models import AppendOnlyError, Fact, Pending, Snapshot, SnapshotKind
from evidence.packed_leaves import MAX_LEAF_BYTES, unpack_leaf
from evidence.problems import KeyUnavailable, RevealReasonTooShort
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.canonical import canonicalize
from kernel.ids import decode, new_id
from kernel.principal import Principal
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.sealed_values import seal

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
CANARY = "canary-9d41c7"
REASON = "An incident is being looked into."


@pytest.fixture
def by(tenant: Tenant) -> Principal:
    return Principal.system("test", tenant_id=tenant.pk)


def write(by: Principal, **changes: Any) -> Fact:
    arguments: dict[str, Any] = {"kind": Kind.TOOL_PAUSED, "subject": "soul:tool:a.b.c", "actor": by}
    return evidence.record(**(arguments | changes))


@pytest.mark.django_db(transaction=True)
def test_a_fact_is_refused_outside_a_transaction(by: Principal) -> None:
    before = Fact.objects.count()

    with pytest.raises(RuntimeError, match="transaction"):
        write(by)
    assert Fact.objects.count() == before


@pytest.mark.django_db(transaction=True)
def test_a_fact_goes_with_the_transaction_that_it_witnesses(by: Principal) -> None:
    before = Fact.objects.count()

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        write(by)
        _ = 1 / 0
    assert (Fact.objects.count(), Pending.objects.count()) == (before, before)


def test_a_leaf_is_canonical_json_and_its_hash_is_the_one_of_rfc_9162(by: Principal) -> None:
    fact = write(by, data=PausedTool(from_="z", to="é", reason=""))

    leaf = bytes(fact.leaf)
    document = json.loads(leaf)
    assert canonicalize(document) == leaf
    assert bytes(fact.leaf_hash) == hashlib.sha256(b"\x00" + leaf).digest()
    assert document["id"] == fact.wire_id
    assert document["data"] == {"from": "z", "reason": "", "to": "é"}
    assert Pending.objects.filter(pk=fact.pk, tenant_id=by.tenant_id).exists()


def test_a_leaf_that_is_too_large_is_refused(by: Principal) -> None:
    with pytest.raises(ValueError, match="digests, not values"):
        write(by, data=PausedTool(from_="x" * MAX_LEAF_BYTES, to="", reason=""))


def test_facts_are_not_changed_and_not_deleted(by: Principal) -> None:
    fact = write(by)

    attempts: list[Callable[[], Any]] = [
        fact.save,
        fact.delete,
        Fact.objects.all().delete,
        lambda: Fact.objects.update(outcome="x"),
        lambda: Fact.objects.bulk_update([fact], ["outcome"]),
        lambda: Fact.objects.update_or_create(pk=fact.pk, defaults={"outcome": "x"}),
    ]
    for attempt in attempts:
        with pytest.raises(AppendOnlyError):
            attempt()
    assert Fact.objects.get(pk=fact.pk).outcome == ""


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("kind", kinds.PAIR)
def test_a_second_begin_or_end_is_refused_by_the_database(kind: Kind, by: Principal) -> None:
    id = new_id()

    with transaction.atomic():
        write(by, kind=kind, invocation_id=id)
        with pytest.raises(IntegrityError, match=r"fact_one_begin_one_end|UNIQUE|append-only"), transaction.atomic():
            write(by, kind=kind, invocation_id=id)
        with pytest.raises(IntegrityError, match="fact_pair_names_its_invocation"), transaction.atomic():
            write(by, kind=kind)
        transaction.set_rollback(True)  # a Begin or End of no call is refused as well


# Values.


def everything_in_the_database() -> str:
    """All rows of all tables, bytes as Latin-1, so that nothing hides in an encoding, and leaves as they are."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                found += [
                    unpack_leaf(bytes(value)).decode("latin-1")
                    if isinstance(value, (bytes, memoryview))
                    else str(value)
                    for value in row
                ]
    return "\n".join(found)


OUTCOMES = {
    "ok": RunOutcome(
        RunStatus.OK,
        value={"text": CANARY, "post_execution_plan": {"then": CANARY}},
        report={"warnings": [CANARY], "sources": []},
        stdout=CANARY,
        stderr=CANARY,
    ),
    "raised": RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message=CANARY, stderr=CANARY),
    "bad result": RunOutcome(RunStatus.BAD_RESULT, error_message=CANARY),
    "domain error": RunOutcome(
        RunStatus.DOMAIN_ERROR, error_code="OUT_OF_STOCK", error_message=CANARY, error_details={"x": CANARY}
    ),
    "wrong shape": RunOutcome(RunStatus.OK, value=[CANARY]),
    "blocked": RunOutcome(
        RunStatus.CAPABILITY_BLOCKED, blocked="net", attempts=(f"net:{CANARY}.example.org:443",), error_message=CANARY
    ),
}


@pytest.mark.req("SPEC-10", "TOOLS-21")
@pytest.mark.parametrize("how", [*OUTCOMES, "refused"])
def test_no_value_of_a_call_is_in_the_database_in_the_clear(
    how: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()
    sandbox.outcome = OUTCOMES.get(how, sandbox.outcome)
    arguments: dict[str, Any] = {"text": CANARY} if how != "refused" else {"text": [CANARY]}

    caller.invoke(ECHO, arguments, user_id=CANARY, session_id=CANARY, client={"app": CANARY})

    assert CANARY not in everything_in_the_database()
    assert "sample.tools.echo" in everything_in_the_database()  # the search itself finds things
    opened = [json.dumps(evidence.open_values(snapshot)) for snapshot in Snapshot.objects.all()]
    assert any(CANARY in text for text in opened)


@pytest.mark.req("SPEC-5", "SPEC-7")
def test_the_end_fact_binds_version_build_output_and_rules(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    tool = enable()
    grant()

    answer = caller.invoke(ECHO, {"text": "x"}, currency="EUR").json()

    row = row_of_body(answer)
    begin, end = (json.loads(bytes(fact.leaf)) for fact in Fact.objects.filter(invocation_id=row).order_by("id"))
    assert tool.current is not None
    assert end["data"]["tool"]["build"] == tool.current.build_digest
    assert end["data"]["tool"]["version"] == "1.0.0"
    assert [(source["name"], source["version"]) for source in end["data"]["sources"]] == [("echo-rules", "7")]
    own, rules = answer["evidence"]["sources"]
    assert own["hash"] == "sha256:" + hashlib.sha256(canonicalize(answer["data"])).hexdigest()
    assert (rules["type"], rules["name"], rules["version"]) == ("ruleset", "echo-rules", "7")
    output = Snapshot.objects.get(invocation_id=row, kind="output")
    assert end["data"]["output"]["commit"] == output.commitment
    assert answer["evidence"]["snapshot_id"] == output.wire_id == end["data"]["output"]["snapshot"]
    assert begin["data"]["input"]["shape"] == {"text": "string(1)"}


def test_what_a_tool_reached_for_is_told_by_kinds_that_are_known(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    forged = tuple(f"{CANARY}\x01\x01{number}:x" for number in range(98))
    sources = [{"type": "a", "name": "n" * 500, "version": "1"}] * 100
    sandbox.outcome = RunOutcome(RunStatus.OK, value={}, attempts=("net:x:1", *forged), report={"sources": sources})

    row = row_of(caller.invoke(ECHO, {}))

    leaf = bytes(Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf)
    assert json.loads(leaf)["data"]["blocked"] == ["net", "other"]
    assert CANARY not in leaf.decode()


def row_of_body(body: dict[str, Any]) -> Any:
    return decode("inv", body["call"]["call_id"])


@pytest.mark.req("SVC-8")
def test_a_post_execution_plan_is_passed_through_and_not_executed(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable("plans")
    enable("echo")
    grant()

    answer = caller.invoke("sample.tools.plans", {"text": "x"})

    body = answer.json()
    assert body["data"] == {"text": "x"}
    assert body["call"]["post_execution_plan"] == {
        "steps": [{"id": "repeat", "tool": "sample.tools.echo", "arguments": {"text": "x"}}]
    }
    assert Fact.objects.filter(kind=Kind.INVOCATION_BEGAN).count() == 1
    assert kinds_of(row_of(answer)) == PAIR
    again = caller.get(f"/invocations/{body['call']['call_id']}").json()
    assert again["call"]["post_execution_plan"] == body["call"]["post_execution_plan"]


def test_equal_values_have_different_commitments_and_ciphertexts(by: Principal) -> None:
    first, second = (seal(by.tenant_id, {"a": 1}) for _ in range(2))

    assert first.commitment != second.commitment
    assert bytes(first.ciphertext) != bytes(second.ciphertext)


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("column", ["tenant_id", "invocation_id", "kind", "ciphertext", "wrapped_key", "nonce"])
def test_a_snapshot_that_was_moved_or_changed_cannot_be_opened(column: str, by: Principal) -> None:
    snapshot = seal(by.tenant_id, {"a": 1})
    changed: dict[str, Any] = {"tenant_id": new_id(), "invocation_id": new_id(), "kind": "output"}
    old = getattr(snapshot, column)
    setattr(snapshot, column, changed.get(column) or bytes([bytes(old)[0] ^ 1]) + bytes(old)[1:])

    with pytest.raises(KeyUnavailable):
        evidence.open_values(snapshot)


@pytest.mark.req("SPEC-10")
def test_values_that_were_exchanged_between_segments_of_a_call_cannot_be_opened(by: Principal) -> None:
    key, id = seal(by.tenant_id, {}).subject_key, new_id()
    assert key is not None
    one, two = (
        evidence.seal_values(
            tenant_id=by.tenant_id, invocation_id=id, kind=SnapshotKind.SEGMENT, value=number, key=key, number=number
        )
        for number in (1, 2)
    )
    for name in ("ciphertext", "nonce", "wrapped_key"):
        setattr(one, name, getattr(two, name))

    with pytest.raises(KeyUnavailable):
        evidence.open_values(one)


# Revealing.


@pytest.fixture
def snapshot(by: Principal) -> Snapshot:
    return seal(by.tenant_id, {"text": CANARY})


@pytest.mark.req("SPEC-10")
def test_a_revealed_value_is_a_fact_before_it_is_shown(
    snapshot: Snapshot, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    opened = evidence._plain

    def watch(snapshot: Snapshot) -> Any:
        seen.append(Fact.objects.filter(kind="snapshot.read", subject=snapshot.wire_id).count())
        return opened(snapshot)

    monkeypatch.setattr(evidence, "_plain", watch)

    assert evidence.reveal_values(snapshot=snapshot, reason=REASON, by=auditor.by) == {"text": CANARY}
    assert seen == [1]
    fact = Fact.objects.get(kind="snapshot.read")
    assert json.loads(bytes(fact.leaf))["actor"]["id"] == auditor.by.id
    monkeypatch.undo()
    assert evidence.open_free_text(fact) == {"reason": REASON}


@pytest.mark.parametrize("reason", ["", "because", "         x         "])
def test_revealing_needs_a_reason_that_says_something(reason: str, snapshot: Snapshot, auditor: Person) -> None:
    with pytest.raises(RevealReasonTooShort):
        evidence.reveal_values(snapshot=snapshot, reason=reason, by=auditor.by)
    assert not Fact.objects.filter(kind="snapshot.read").exists()


@pytest.mark.req("TOOLS-22", "SPEC-10")
def test_a_stranger_reveals_nothing(snapshot: Snapshot, stranger: Person) -> None:
    with pytest.raises(Snapshot.DoesNotExist):
        evidence.reveal_values(snapshot=snapshot, reason=REASON, by=stranger.by)


@pytest.mark.req("SPEC-10")
def test_an_auditor_sees_values_after_giving_a_reason_and_an_operator_never(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    auditor: Person,
    operator: Person,
) -> None:
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": CANARY}))
    page, values = f"/invocations/{row.wire_id}", f"/invocations/{row.wire_id}/values"

    before = auditor.client().get(page)
    without = auditor.client().post(values, {"reason": "because"})
    shown = auditor.client().post(values, {"reason": REASON})
    refused = operator.client().post(values, {"reason": REASON})

    assert CANARY not in before.content.decode()
    assert (without.status_code, CANARY in without.content.decode()) == (422, False)
    assert "because" in without.content.decode()  # what was typed is kept
    assert (shown.status_code, CANARY in shown.content.decode()) == (200, True)
    assert refused.status_code == 403
    assert Fact.objects.filter(kind="snapshot.read", invocation_id=row.pk).count() == 2  # input and output


def test_an_agent_that_reads_its_answer_again_leaves_a_fact(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}))

    caller.get(f"/invocations/{row.wire_id}")

    assert kinds_of(row) == [*PAIR, "snapshot.read"]


@pytest.mark.req("TOOLS-28")
def test_the_facts_of_a_call_can_be_fetched_and_their_hashes_recomputed(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": CANARY}))

    facts = caller.get(f"/evidence/invocations/{row.wire_id}").json()["data"]["facts"]

    assert [fact["kind"] for fact in facts] == PAIR
    for fact in facts:
        assert hashlib.sha256(b"\x00" + fact["leaf"].encode()).hexdigest() == fact["leaf_hash"]
        assert CANARY not in fact["leaf"]
