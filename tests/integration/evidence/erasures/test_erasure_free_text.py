"""Free text in erasures: is what people wrote about a person gone with the rest, in whichever column of the hub they wrote it?"""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.db import connection, models, transaction
from django.utils import timezone

from access.consents import services as consents
from access.models import Consent
from access.roles import Role
from evidence import retention
from evidence import services as evidence
from evidence.erasures import services as erasures
from evidence.erasures.free_text import WRITTEN, PersonNames
from evidence.exports.services import make_export
from evidence.kinds import Kind
from evidence.leaves.controls import DraftedPolicy
from evidence.leaves.grants import RevokedGrant
from evidence.models import ExportJob, Fact, SavedSearch
from evidence.search.saved_searches import save_search
from invocations.models import Invocation
from invocations.replays.services import replay_call
from kernel.problems import SchemaInvalid
from tests.conftest import make_person
from tests.support.calls import row_of
from tests.support.erasures import REASON, cells, dump, opened
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.populated_tenant import ECHO, WRITE, make_publisher, make_things
from toolhub.database.row_level_security import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things

pytestmark = pytest.mark.django_db(transaction=True)
ANN = "user-ann-4711"
WORD = "zqLindqvist"  # in every text that somebody wrote about Ann

IDS = "an id, a digest, a code or a name that the hub itself gives"
CHOSEN = "a name that an administrator gives to a thing of the hub, not to a person (ADR 0026)"
AUTHORS = "what a tool's author has published; hashed and signed as it is"
RULES = "what decides over calls, cited by its digest"
SETUP = "where something of the hub is, as an administrator has set it up"
HUBS = "written by the hub: codes, counts, states, and classes of errors"

# Columns of a person's own calls and chains: emptied, or their rows removed, when the person is erased (evidence.erasures.holders).
OF_CALLS = {
    "invocations.Invocation": {"request_id", "idempotency_key", "sources"},
    "invocations.Chain": {"request_id", "idempotency_key"},
    "invocations.AgentRun": {"request_id", "idempotency_key"},
    "invocations.Artifact": {"name", "media_type", "summary"},
    "invocations.StoredFile": {"path"},
    "invocations.ToolFiles": {"names"},
}
NO_WORDS = {
    "evidence.Anchor": {"name": SETUP, "last_error": HUBS},
    "evidence.MasterKey": {"key_id": IDS, "check_value": IDS},
    "evidence.TenantKey": {"key_id": IDS},
    "evidence.SubjectKey": {"subject": IDS},
    "evidence.Erasure": {"subject": IDS, "asked_by": IDS, "counts": HUBS},
    "evidence.Retention": {"name": HUBS},
    "evidence.ExportJob": dict.fromkeys(("actor_kind", "actor_id", "digest", "key_id", "exporter"), IDS)
    | dict.fromkeys(("progress", "problem"), HUBS),
    "evidence.Fact": dict.fromkeys(("subject", "actor_kind", "actor_id", "tool", "trace_id"), IDS)
    | dict.fromkeys(("outcome", "reason"), HUBS),
    "evidence.Log": {"origin": SETUP},
    "evidence.Checkpoint": {"note": HUBS},
    "evidence.LogKey": {"name": SETUP},
    "evidence.SavedSearch": {"owner": IDS},
    "invocations.SavedView": {"owner": IDS},
    "evidence.EventSink": dict.fromkeys(("name", "url", "kinds"), SETUP) | {"last_error": HUBS, "created_by": IDS},
    "evidence.SinkSecret": {"key_id": IDS},
    "evidence.Snapshot": dict.fromkeys(("alg", "commitment", "key_id"), IDS),
    "evidence.Verification": {"asked_by": IDS, "findings": HUBS, "checker": HUBS, "stopped_by": HUBS},
    "access.Tenant": {"slug": CHOSEN, "name": CHOSEN},
    "access.DisplaySettings": {"time_zone": HUBS},
    "access.Agent": {"name": CHOSEN},
    "access.ApiKey": {"name": CHOSEN} | dict.fromkeys(("lookup", "revoked_by", "created_by"), IDS)
    | dict.fromkeys(("scopes", "networks"), RULES),
    "access.TrustedIssuer": dict.fromkeys(("issuer", "audience", "jwks_url", "jwks"), SETUP) | {"created_by": IDS},
    "access.AgentIdentity": {"subject": SETUP, "scopes": RULES},
    "access.Notification": {"target": SETUP, "events": SETUP, "secret_key_id": IDS, "created_by": IDS},
    "access.Delivery": dict.fromkeys(("event", "subject", "body", "last_error"), HUBS),
    "access.Grant": dict.fromkeys(("tools", "capabilities", "scopes", "conditions"), RULES)
    | {"source": HUBS, "given_by": IDS, "revoked_by": IDS},
    "access.Budget": {"tool": IDS, "set_by": IDS, "ended_by": IDS},
    # What a program says of itself, before anybody of the tenant knows it; networks of requests.
    "access.Connection": {"client_name": CHOSEN}
    | dict.fromkeys(("client_id", "client_digest", "code_digest", "form_digest", "ended_by"), IDS)
    | dict.fromkeys(("redirect_host", "resource", "redeemed_from", "last_used_from", "end_reason", "scopes", "tools"), RULES),
    "access.ConnectionRule": {"set_by": IDS},
    "access.AssertionRule": dict.fromkeys(("scopes", "tools"), RULES) | {"set_by": IDS},
    "access.EnteredClient": {"entered_by": IDS},
    "access.ConnectionToken": {"digest": IDS, "used_from": RULES},
    "access.Consent": {"tool": IDS, "versions": RULES, "data_classes": RULES, "asked_through": IDS}
    | dict.fromkeys(("user_fingerprint", "arguments_fingerprint", "policy_hash", "requested_by", "decided_by"), IDS),
    "access.Halt": dict.fromkeys(("target", "thrown_by", "lifted_by"), IDS),
    "access.PolicyVersion": dict.fromkeys(("document", "digest"), RULES)
    | {"drafted_by": IDS, "published_by": IDS, "simulation": HUBS},
    "access.GrantRequest": dict.fromkeys(("tools", "capabilities", "scopes", "conditions"), RULES)
    | {"requested_by": IDS, "decided_by": IDS},
    "registry.PublisherKey": {"name": CHOSEN} | dict.fromkeys(("key_id", "public_key", "added_by", "revoked_by"), IDS),
    "registry.Capsule": dict.fromkeys(("digest", "package", "envelope"), AUTHORS) | {"uploaded_by": IDS},
    "registry.PublishingRules": {"changed_by": IDS},
    "registry.Import": dict.fromkeys(("group", "source", "offered", "wanted", "drafts", "refusals", "made"), AUTHORS)
    | dict.fromkeys(("failure", "progress", "worker"), HUBS)
    | {"digest": IDS, "started_by": IDS},
    "registry.Tool": {"name": AUTHORS, "successor": AUTHORS, "state_changed_by": IDS},
    "registry.ToolVersion": dict.fromkeys(("version", "manifest", "warnings", "changes", "display_name", "tags"), AUTHORS)
    | dict.fromkeys(("domains", "search", "title_words", "text_words", "side_effect", "safety_class"), AUTHORS)
    | dict.fromkeys(("manifest_digest", "build_digest", "submitted_by", "drafted_by", "yanked_by", "trusted_by"), IDS),
    "registry.Review": {"acknowledged": IDS, "decided_by": IDS},
    "registry.Dependencies": dict.fromkeys(("lock", "lock_digest"), AUTHORS)
    | dict.fromkeys(("progress", "failure", "builder"), HUBS),
    "registry.Installation": {"name": AUTHORS, "config_digest": IDS, "changed_by": IDS}
    | dict.fromkeys(("pin", "config", "hosts", "paths", "secrets"), SETUP),
    "registry.ModelProvider": {"name": CHOSEN, "changed_by": IDS}
    | dict.fromkeys(("kind", "address", "secret", "settings", "data_classes"), SETUP),
    "registry.ModelPrices": {"document": SETUP, "set_by": IDS},
    "registry.ModelPrefix": {"text": RULES, "digest": RULES, "set_by": IDS},
    "registry.ModelCircuit": {"model": SETUP, "why": HUBS},
    "registry.Secret": {"name": CHOSEN, "key_id": IDS, "set_by": IDS},
    "invocations.ArtifactContent": {"fingerprint": IDS, "key_id": IDS},
    "invocations.CallbackEndpoint": {"name": SETUP, "url": SETUP, "created_by": IDS},
    "invocations.CallbackSecret": {"key_id": IDS},
    "invocations.CallbackAttempt": {"error": HUBS},
    "invocations.Chain": dict.fromkeys(("credential", "user_fingerprint", "plan_fingerprint", "trace"), IDS)
    | {"reason": HUBS},
    "invocations.ChainStep": {"name": "an id in a plan: small letters and digits, cited in leaves", "tool": IDS, "reason": HUBS},
    "invocations.AgentRun": dict.fromkeys(("credential", "user_fingerprint", "question_fingerprint", "trace", "model"), IDS)
    | dict.fromkeys(("limits", "reason"), HUBS),
    "invocations.Playground": {"created_by": IDS},
    "invocations.PlaygroundConversation": {"person": IDS},
    "invocations.PlaygroundSide": {"model": IDS, "reason": HUBS},
    "invocations.AgentRunStep": {"tool": "a tool's id, or what a model wrote in its place", "reason": HUBS},
    "invocations.Replay": {"tool": IDS, "asked_by": IDS, "result": HUBS},
    "invocations.Rerun": dict.fromkeys(("why", "notes", "state", "problem"), HUBS) | {"version": IDS, "image": IDS},
    "invocations.Invocation": dict.fromkeys(("tool", "actors", "user_fingerprint", "arguments_fingerprint", "serial_key"), IDS)
    | dict.fromkeys(("policy_version", "policy_hash", "profile_hash", "output_digest", "resolved_by", "trace"), IDS)
    | {"obligations": RULES, "limiters": RULES, "steps": HUBS, "reason": HUBS, "budget": HUBS},
    "invocations.RunProfile": {"digest": IDS, "document": RULES},
    "invocations.Attempt": dict.fromkeys(("worker", "status", "box", "image"), HUBS),
    "invocations.Tally": dict.fromkeys(("kind", "agent", "tool", "reason"), HUBS),
    "invocations.StoredFile": {"fingerprint": IDS, "key_id": IDS, "changed_by": IDS},
    "invocations.ToolFiles": {
        **dict.fromkeys(("group", "package"), AUTHORS),
        **dict.fromkeys(("scope", "owner", "fingerprint", "key_id", "changed_by"), IDS),
    },
    "access.AccountServer": {
        **dict.fromkeys(("resource", "issuer", "terms", "client_id"), SETUP),
        **dict.fromkeys(("key_id", "entered_by"), IDS),
    },
    "access.ServerAccount": {
        **dict.fromkeys(("issuer", "client_id", "terms", "scopes"), SETUP),
        **dict.fromkeys(("agents", "asked_by", "lists_held", "ended_by", "end_reason"), IDS),
    },
    "access.AccountAuthorization": {
        **dict.fromkeys(("issuer", "client_id", "terms", "scopes"), SETUP),
        **dict.fromkeys(("digest", "callback", "agents"), IDS),
    },
    "access.ReturnedTokens": {"client_id": SETUP, "terms": SETUP, "last_error": HUBS},
    "invocations.CallCost": {"tool": IDS, "currency": RULES},
    "invocations.CallHour": {"tool": IDS, "state": HUBS, "reason": HUBS},
    "invocations.ModelMeter": {"provider": CHOSEN, "model": SETUP, "learned": HUBS, "window": HUBS},
    "invocations.UnfinishedCall": {"state": HUBS, "work_class": HUBS, "serial_key": IDS, "running_key": IDS},
    "invocations.Unmapped": {"place": HUBS, "error": HUBS},
    "invocations.SandboxHost": {"name": HUBS, "snapshot": HUBS},
}  # fmt: skip


def text_columns() -> Iterator[tuple[str, str]]:
    """Every column of ours that could hold a sentence."""
    for model in apps.get_models():
        if model._meta.app_label in OURS:
            for column in model._meta.concrete_fields:
                if isinstance(column, models.CharField | models.TextField | models.JSONField) and not column.choices:
                    yield model._meta.label, column.name


@pytest.mark.req("SPEC-10")
def test_of_every_column_with_text_it_is_said_how_a_person_is_taken_out_of_it() -> None:
    written = {(each.model, each.column) for each in WRITTEN}
    of_calls = {(model, column) for model, names in OF_CALLS.items() for column in names}
    none = {(model, column) for model, names in NO_WORDS.items() for column in names}
    there = set(text_columns())

    assert there - written - of_calls - none == set(), (
        "Put it into evidence.erasures.free_text, or say here why it holds no words."
    )
    assert (written | of_calls | none) - there == set(), "There is no such column any more."
    assert not written & none
    assert not of_calls & (written | none)


@pytest.fixture
def things(bell: Bell) -> Things:
    make_publisher()
    return make_things("acme")


def name_ann_everywhere(things: Things) -> set[str]:
    """Each column in which people write says something of its own about her; returns all that is said."""
    said = set()
    for each in WRITTEN:
        text = f"for {ANN}, {WORD}-{each.model}-{each.column}"
        rows = apps.get_model(each.model)._base_manager.filter(**{each.tenant: things.tenant.pk})
        pk = rows.values_list("pk", flat=True).first()
        if pk is None:  # nothing makes one in the tests' tenant
            raise LookupError(f"tests/support/populated_tenant.py makes no {each.model}.")
        if each.model != "evidence.ExportJob":
            apps.get_model(each.model)._base_manager.filter(pk=pk).update(**{each.column: text})
            said.add(text)
    with transaction.atomic():
        by, reason, note = things.people["first"].by, f"{WORD}-fact of {ANN}", f"{WORD}-note of {ANN}"
        revoked = RevokedGrant(agent="agt_x", reason=reason)
        evidence.record(kind=Kind.GRANT_REVOKED, subject="grt_x", actor=by, data=revoked)
        drafted = DraftedPolicy(label="tenant@1", digest="sha256:x", rules=1, note=note)
        evidence.record(kind=Kind.POLICY_DRAFTED, subject="pol_x", actor=by, data=drafted)
        said |= {reason, note}
    return said


def calls_for_ann(things: Things, bell: Bell) -> None:
    """Hers by the rows alone: nothing that is written here has her id."""
    by, auditor = things.people["first"].by, make_person(things.tenant, "auda", Role.AUDITOR).by
    sent: dict[str, Any] = {"user_id": ANN, "request_id": f"{WORD}-request", "idempotency_key": f"{WORD}-key"}
    call = row_of(things.caller.invoke(ECHO, {"text": WORD}, **sent))
    replay_call(invocation_id=call.pk, reason=f"{WORD} wants to know why", by=by)
    held = things.caller.invoke(WRITE, {"text": WORD}, user_id=ANN, on_consent="hold", purpose=f"for {WORD}")
    assert held.status_code == 202
    waiting = Consent.objects.latest("pk")
    consents.approve_consent(consent_id=waiting.pk, reason=f"{WORD} is known to us", by=by)
    bell.deliver()
    with signing_with():
        seal_everything()
        make_export(format="bundle", opens=True, reason=f"{WORD} has asked for it", by=auditor)
        ended = make_export(format="bundle", opens=True, reason=f"{WORD} asked before", by=auditor)
    ExportJob.objects.filter(pk=ended.pk).update(state="cancelled", finished_at=timezone.now())


def forget(things: Things, *names: str) -> Any:
    owner = things.people["owner"].by
    _, confirm = erasures.preview_erasure(user_id=ANN, names=names, by=owner)
    asked = erasures.erase_subject(user_id=ANN, names=names, reason=REASON, confirm=confirm, by=owner)
    erasures.advance_erasures()
    asked.refresh_from_db()
    assert asked.state == "done"
    Invocation.objects.filter(key_until__isnull=False).update(key_until=timezone.now() - timedelta(seconds=1))
    retention.apply_due_retention()
    return asked


@pytest.mark.req("SPEC-10")
def test_what_people_wrote_about_a_persons_calls_goes_with_the_calls(things: Things, bell: Bell) -> None:
    calls_for_ann(things, bell)
    assert WORD in dump()
    assert WORD in opened()

    forget(things)

    assert [cell for cell in cells() if WORD in cell or ANN in cell] == []
    assert WORD not in dump()
    assert WORD not in opened()


@pytest.mark.req("SPEC-10")
def test_a_text_that_names_the_person_goes_wherever_it_was_written(things: Things) -> None:
    said = name_ann_everywhere(things)
    leaves = {fact.pk: bytes(fact.leaf_hash) for fact in Fact.objects.all()}
    assert len([cell for cell in cells() if WORD in cell]) >= len(said) - 2

    done = forget(things)

    assert done.counts["texts"] >= len(said)
    assert [cell for cell in cells() if WORD in cell or ANN in cell] == []
    assert WORD not in dump()
    assert WORD not in opened()
    assert {fact.pk: bytes(fact.leaf_hash) for fact in Fact.objects.filter(pk__in=leaves)} == leaves


@pytest.mark.req("SPEC-10")
def test_an_export_that_was_asked_for_by_a_name_is_not_made(things: Things) -> None:
    with signing_with():
        seal_everything()
        job = make_export(format="csv", query=f'agent:"{ANN}"', by=things.people["owner"].by)

    forget(things)

    job.refresh_from_db()
    assert (job.state, job.query) == ("failed", "(erased)")
    assert "forgotten" in job.problem


@pytest.mark.req("SPEC-10")
def test_no_column_that_must_differ_from_row_to_row_gets_the_same_text_in_each() -> None:
    for each in WRITTEN:
        model = apps.get_model(each.model)
        unique = {name for rule in model._meta.constraints for name in getattr(rule, "fields", ())}
        unique |= {field.name for field in model._meta.concrete_fields if field.unique}
        assert bool(each.prefix) == (each.column in unique), each


@pytest.mark.req("SPEC-10")
def test_all_saved_searches_of_one_owner_that_name_the_person_are_renamed_each_time(things: Things) -> None:
    owner = things.people["owner"].by
    for names in (("about Ann Lindqvist", "Ann Lindqvist again"), ("Ann Lindqvist came back", "Ann Lindqvist 4")):
        for name in names:
            save_search(name=name, query="kind:grant.revoked", shared=False, by=owner)
        assert forget(things, "Ann Lindqvist").counts["texts"] == len(names)

    kept = SavedSearch.objects.filter(owner=owner.id, name__startswith="(erased)")
    assert sorted(row.name for row in kept) == sorted(f"(erased) {row.wire_id}" for row in kept)
    assert len(kept) == 4


@pytest.mark.req("SPEC-10")
def test_texts_are_found_by_the_other_names_that_are_given_and_by_nothing_within_a_word(things: Things) -> None:
    halt = apps.get_model("access.Halt").objects.get(tenant=things.tenant)
    grant, other = apps.get_model("access.Grant").objects.filter(tenant=things.tenant).order_by("pk")[:2]
    for row, text in ((halt, "Ann Lindqvist complained"), (grant, "给林德退款"), (other, "user-ann-47110 and Annika")):
        row.reason = text
        row.save(update_fields=["reason"])

    done = forget(things, "ann lindqvist", "林德")

    for row in (halt, grant, other):
        row.refresh_from_db()
    assert (halt.reason, grant.reason, other.reason) == ("(erased)", "(erased)", "user-ann-47110 and Annika")
    assert done.counts["texts"] == 2


@pytest.mark.req("SPEC-10")
def test_a_text_goes_in_whatever_case_and_form_its_letters_are_written(things: Things) -> None:
    rows = apps.get_model("access.Grant").objects.filter(tenant=things.tenant).order_by("pk")[:2]
    halt = apps.get_model("access.Halt").objects.get(tenant=things.tenant)
    texts = ("for JÖRG ÅSTRÖM", f"for {unicodedata.normalize('NFD', 'Jörg Åström')}", "for jörg åström")
    for row, text in zip((*rows, halt), texts, strict=True):
        row.reason = text
        row.save(update_fields=["reason"])

    assert forget(things, "Jörg Åström").counts["texts"] == 3


@pytest.mark.req("SPEC-10")
def test_sealed_texts_are_opened_before_the_transaction_and_in_it_only_those_that_came_since(
    things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    by, opening, within = things.people["first"].by, evidence.open_values, list[bool]()
    write = partial(evidence.record, kind=Kind.GRANT_REVOKED, subject="grt_x", actor=by)

    def open_and_write_another(row: Any) -> Any:
        within.append(connection.in_atomic_block)
        if len(within) == 1:
            with transaction.atomic():
                write(data=RevokedGrant(agent="agt_x", reason=f"{WORD}-later of {ANN}"))
        return opening(row)

    with transaction.atomic():
        write(data=RevokedGrant(agent="agt_x", reason=f"{WORD}-before of {ANN}"))
    owner = things.people["owner"].by
    _, confirm = erasures.preview_erasure(user_id=ANN, by=owner)
    monkeypatch.setattr("evidence.erasures.free_text.open_values", open_and_write_another)
    done = erasures.erase_subject(user_id=ANN, reason=REASON, confirm=confirm, by=owner)
    monkeypatch.undo()

    assert within.count(True) == 1
    assert done.counts["texts"] == 2
    assert WORD not in opened()


@pytest.mark.req("SPEC-10")
def test_the_reason_of_an_erasure_does_not_name_the_person_and_short_names_are_refused(things: Things) -> None:
    owner = things.people["owner"].by
    _, confirm = erasures.preview_erasure(user_id=ANN, names=["Lindqvist"], by=owner)
    for reason in (f"{ANN} has asked for it.", "Ms Lindqvist has asked for it."):
        with pytest.raises(SchemaInvalid, match="Do not name"):
            erasures.erase_subject(user_id=ANN, names=["Lindqvist"], reason=reason, confirm=confirm, by=owner)
    with pytest.raises(SchemaInvalid, match="4 letters"):
        erasures.preview_erasure(user_id=ANN, names=["an"], by=owner)


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("ann-1", "for ann-1.", True),
        ("ann-1", "for ANN-1, please", True),
        ("ann-1", "for ann-12", False),
        ("ann-1", "for ann-1-b", False),
        ("ann-1", "for joann-1", False),
        ("a+b@x.org", "mail a+b@x.org now", True),
        ("张三丰", "给张三丰退款", True),
        ("ann", "ann", False),
        ("Strauß", "Herr STRAUSS", True),
        ("Łukasz", "an ŁUKASZ", True),
        ("Rene", "René", False),
    ],
)
def test_a_name_is_found_as_a_word_of_its_own(name: str, text: str, found: bool) -> None:
    assert PersonNames([name]).stand_in(text) is found
