"""Capsules: does a capsule become versions that run, and is code that somebody changed never run?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.services import give_grant
from evidence.models import Fact
from invocations.run import staged_packages
from registry.capsules import publisher_keys
from registry.capsules import services as capsules
from registry.installations import services as installations
from registry.models import Capsule, Decision, Tool, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.capsules import ANOTHER, SOURCE, capsule, entries_of, pem_of, public_pem_of, shouting, zipped
from tests.support.policies_in_force import forbid, permit, put_in_force
from unitools.capsules import archive
from unitools.capsules.signatures import read_public_key, sign

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import PublisherKey
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell
    from unitools import capsules as unitools

pytestmark = pytest.mark.django_db
SHOUT = "acme.voice.shout"


@pytest.fixture(autouse=True)
def nothing_shipped_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_packages, "_shipped", {})


@pytest.fixture
def publisher_key(operator: Person) -> PublisherKey:
    return publisher_keys.add_publisher_key(name="release", pem=public_pem_of(), by=operator.by)


def leaf_of(fact: Fact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(fact.leaf))
    return found


def upload(caller: Caller, data: bytes, envelope: bytes = b"") -> Any:
    signed = {"Capsule-Signature": base64.b64encode(envelope).decode()} if envelope else {}
    headers = caller.headers() | signed
    return Client().post("/api/v1/capsules", data, content_type="application/zip", headers=headers)


@pytest.fixture
def enabled(caller: Caller, operator: Person, grant: Callable[..., Any]) -> Callable[..., Tool]:
    """``enabled(capsule, envelope)``: uploaded, reviewed, enabled and granted."""

    def make(made: unitools.Capsule, envelope: bytes = b"") -> Tool:
        answer = upload(caller, made.data, envelope)
        assert answer.status_code == 201, answer.json()
        for version in ToolVersion.objects.filter(capsule__digest=made.digest):
            reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
            lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=operator.by)
        grant(tools="acme.*")
        return Tool.objects.get(name=SHOUT)

    return make


@pytest.mark.req("TOOLS-32")
def test_a_capsule_becomes_versions_that_wait_for_their_review(caller: Caller) -> None:
    made = capsule(shouting(), shouting(name="whisper"))

    answer = upload(caller, made.data)

    data = answer.json()["data"]
    assert answer.status_code == 201
    assert (data["digest"], data["size"], data["package"]) == (made.digest, len(made.data), "acme_voice")
    assert data["signed_by"] is None
    assert [(each["tool"], each["build_digest"], each["review_state"]) for each in data["versions"]] == [
        (SHOUT, made.digest, "submitted"),
        ("acme.voice.whisper", made.digest, "submitted"),
    ]
    assert [fact["kind"] for fact in map(leaf_of, Fact.objects.order_by("id"))][-3:] == [
        "capsule.uploaded",
        "tool.registered",
        "tool.registered",
    ]


@pytest.mark.req("TOOLS-32")
def test_the_same_capsule_again_gives_the_same_versions(caller: Caller) -> None:
    made = capsule()

    first, again = upload(caller, made.data).json()["data"], upload(caller, made.data).json()["data"]

    assert first == again
    assert (Capsule.objects.count(), ToolVersion.objects.count()) == (1, 1)


@pytest.mark.req("TOOLS-32")
def test_other_code_under_the_same_version_is_refused_and_nothing_of_it_is_kept(caller: Caller) -> None:
    upload(caller, capsule().data)

    answer = upload(caller, capsule(shouting(), shouting(name="new"), source="def run(text): return {}\n").data)

    assert_problem(answer, 409, "TOOL.VERSION_EXISTS")
    assert (Capsule.objects.count(), ToolVersion.objects.count()) == (1, 1)


@pytest.mark.req("TOOLS-32")
def test_what_is_no_capsule_is_answered_with_the_name_of_the_problem(caller: Caller) -> None:
    good = capsule()
    traversal = zipped(entries_of(good.data) | {"../evil.py": b"evil"})

    for data, problem in (
        (b"", "NotAnArchive"),
        (b"{}", "NotAnArchive"),
        (good.data + b"x", "TrailingData"),
        (traversal, "PathTraversal"),
        (good.data.replace(b"upper", b"lower"), "ChangedBytes"),
    ):
        answer = upload(caller, data)
        assert_problem(answer, 422, "CAPSULE.INVALID")
        assert answer.json()["error"]["details"]["problem"] == problem
    assert not Capsule.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_one_wrong_manifest_keeps_all_of_them_out(caller: Caller) -> None:
    answer = upload(caller, capsule(shouting(), shouting(name="wrong", side_effect="Everything")).data)

    assert_problem(answer, 422, "MANIFEST.INVALID")
    assert not ToolVersion.objects.exists()
    assert not Capsule.objects.exists()


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"properties": found}
    return found


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    "changes", [{"input_schema": nested(100)}, {"description": "a\0b"}, {"description": "a\ud800b"}]
)
def test_a_manifest_that_would_not_be_taken_alone_is_not_taken_in_a_capsule(
    changes: dict[str, Any], caller: Caller
) -> None:
    files = entries_of(capsule().data)
    files["manifests/acme.voice.shout.json"] = json.dumps(shouting(**changes)).encode()

    answer = upload(caller, archive.write_archive(files))

    assert_problem(answer, 422, "CAPSULE.INVALID")
    assert answer.json()["error"]["details"]["problem"] == "WrongManifest"


@pytest.mark.req("TOOLS-32")
def test_more_than_the_room_of_a_tenant_is_refused(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_CAPSULES_MAX_MB = 0

    assert_problem(upload(caller, capsule().data), 409, "CAPSULE.NO_ROOM")
    assert not ToolVersion.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_a_tool_of_an_uploaded_capsule_runs_in_the_sandbox_and_evidence_names_the_capsule(
    enabled: Callable[..., Tool], caller: Caller, bell: Bell, publisher_key: PublisherKey
) -> None:
    made = capsule()
    enabled(made, sign(made, pem_of()))

    answer = caller.invoke(SHOUT, {"text": "quiet"})

    assert answer.json()["data"] == {"said": "QUIET"}, answer.json()
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    begin = leaf_of(Fact.objects.get(invocation_id=row.pk, kind="invocation.began"))["data"]
    assert begin["tool"]["build"] == made.digest
    assert begin["decision_input"]["signed"] is True
    assert begin["decision_input"]["signed_by"] == publisher_key.key_id


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("with_its_digest", [False, True])
def test_bytes_that_were_altered_in_the_database_are_never_run(
    with_its_digest: bool, enabled: Callable[..., Tool], caller: Caller, bell: Bell
) -> None:
    enabled(capsule())
    evil = capsule(source=SOURCE.replace("upper", "lower"))
    changes = {"content": evil.data} | ({"digest": evil.digest} if with_its_digest else {})
    Capsule.objects.update(**changes)

    answer = caller.invoke(SHOUT, {"text": "Quiet"})

    assert_problem(answer, 409, "TOOL.BUILD_CHANGED")
    assert kinds_of(row_of(answer)) == PAIR


@pytest.mark.req("TOOLS-32")
def test_a_process_that_knows_the_capsule_runs_what_was_reviewed_whatever_became_of_the_row(
    enabled: Callable[..., Tool], caller: Caller, bell: Bell
) -> None:
    enabled(capsule())
    caller.invoke(SHOUT, {"text": "a"})
    Capsule.objects.update(content=capsule(source=SOURCE.replace("upper", "lower")).data)

    answer = caller.invoke(SHOUT, {"text": "Quiet"}, request_id="test-request-2").json()
    assert answer["data"] == {"said": "QUIET"}, answer


# Who signed it.


@pytest.mark.req("TOOLS-32")
def test_who_signed_a_capsule_is_recorded_with_it(caller: Caller, publisher_key: PublisherKey) -> None:
    made = capsule()

    data = upload(caller, made.data, sign(made, pem_of())).json()["data"]

    assert data["signed_by"] == {"id": publisher_key.wire_id, "name": "release", "key_id": publisher_key.key_id}
    registered = leaf_of(Fact.objects.get(kind="tool.registered"))["data"]
    assert registered["signed_by"] == publisher_key.key_id == read_public_key(public_pem_of()).id
    assert registered["build_digest"] == made.digest


@pytest.mark.req("TOOLS-32")
def test_a_signature_that_cannot_be_believed_is_refused_though_none_is_asked_for(
    caller: Caller, operator: Person, publisher_key: PublisherKey
) -> None:
    made, other = capsule(), capsule(shouting("1.0.1"))
    signature = sign(made, pem_of())

    assert_problem(upload(caller, made.data, sign(made, pem_of(ANOTHER))), 403, "CAPSULE.SIGNER_UNKNOWN")
    assert_problem(upload(caller, other.data, signature), 422, "CAPSULE.SIGNATURE_INVALID")
    assert_problem(upload(caller, made.data, b"{}"), 422, "CAPSULE.SIGNATURE_INVALID")
    unheard_of = json.loads(signature) | {"signatures": [{"keyid": "a\0" * 9, "sig": "AA=="}]}
    assert_problem(upload(caller, made.data, json.dumps(unheard_of).encode()), 403, "CAPSULE.SIGNER_UNKNOWN")
    publisher_keys.revoke_publisher_key(key_id=publisher_key.pk, reason="lost", by=operator.by)
    assert_problem(upload(caller, made.data, signature), 403, "CAPSULE.SIGNER_UNKNOWN")
    headers = caller.headers() | {"Capsule-Signature": "no base64"}
    answer = Client().post("/api/v1/capsules", made.data, content_type="application/zip", headers=headers)
    assert_problem(answer, 422, "CAPSULE.SIGNATURE_INVALID")
    assert not ToolVersion.objects.exists()


@pytest.mark.req("TOOLS-32")
def test_a_key_of_another_tenant_signs_nothing_here(caller: Caller, stranger: Person) -> None:
    publisher_keys.add_publisher_key(name="theirs", pem=public_pem_of(), by=stranger.by)
    made = capsule()

    assert_problem(upload(caller, made.data, sign(made, pem_of())), 403, "CAPSULE.SIGNER_UNKNOWN")


@pytest.mark.req("TOOLS-32")
def test_a_tenant_that_asks_for_signatures_takes_nothing_unsigned(
    caller: Caller, operator: Person, publisher_key: PublisherKey
) -> None:
    publisher_keys.change_publishing(signatures_required=True, by=operator.by)
    made = capsule()

    assert_problem(upload(caller, made.data), 403, "CAPSULE.UNSIGNED")
    assert upload(caller, made.data, sign(made, pem_of())).status_code == 201


@pytest.mark.req("TOOLS-32")
def test_a_signature_is_not_added_to_what_was_registered_without_one(
    caller: Caller, publisher_key: PublisherKey
) -> None:
    made = capsule()
    upload(caller, made.data)

    assert_problem(upload(caller, made.data, sign(made, pem_of())), 409, "TOOL.VERSION_EXISTS")
    assert Capsule.objects.get().signed_by is None


@pytest.mark.req("TOOLS-32")
def test_a_policy_lets_only_signed_tools_run_and_a_revoked_key_counts_with_the_next_call(
    enabled: Callable[..., Tool], caller: Caller, operator: Person, tenant: Any, bell: Bell, publisher_key: PublisherKey
) -> None:
    put_in_force(permit(), forbid("unsigned", signed={"equals": False}), tenant=tenant)
    made = capsule()
    enabled(made, sign(made, pem_of()))

    before = caller.invoke(SHOUT, {"text": "a"})
    publisher_keys.revoke_publisher_key(key_id=publisher_key.pk, reason="It was stolen.", by=operator.by)
    after = caller.invoke(SHOUT, {"text": "a"}, request_id="test-request-2")

    assert before.status_code == 200, before.json()
    assert_problem(after, 403, "POLICY.DENY_TOOL")
    asked = leaf_of(Fact.objects.get(invocation_id=row_of(after).pk, kind="invocation.began"))["data"]["decision_input"]
    assert asked["signed"] is False
    assert "signed_by" not in asked


@pytest.mark.req("TOOLS-32")
def test_a_policy_names_the_key_whose_signature_it_wants(
    enabled: Callable[..., Tool], caller: Caller, tenant: Any, bell: Bell, publisher_key: PublisherKey
) -> None:
    made = capsule()
    enabled(made, sign(made, pem_of()))
    put_in_force(permit(signed_by={"equals": "0" * 64}), tenant=tenant)
    assert_problem(caller.invoke(SHOUT, {"text": "a"}), 403, "POLICY.DENY_TOOL")

    put_in_force(permit(signed_by={"equals": publisher_key.key_id}), tenant=tenant)
    assert caller.invoke(SHOUT, {"text": "a"}, request_id="test-request-2").status_code == 200


# Other tenants.


@pytest.mark.req("TOOLS-32")
def test_a_shared_tool_of_a_capsule_runs_where_it_was_installed_with_its_publishers_signature(
    enabled: Callable[..., Tool],
    operator: Person,
    stranger: Person,
    foreign_caller: Caller,
    foreign_tenant: Any,
    bell: Bell,
    publisher_key: PublisherKey,
) -> None:
    made = capsule()
    enabled(made, sign(made, pem_of()))
    lifecycle.share_tool(name=SHOUT, reason="for all", by=operator.by)
    installations.install_tool(name=SHOUT, publisher="acme", reason="we need it", by=stranger.by)
    give_grant(agent_id=foreign_caller.agent.pk, tools="acme.*", reason="x", by=stranger.by)
    put_in_force(permit(signed={"equals": True}), tenant=foreign_tenant)

    assert foreign_caller.invoke(SHOUT, {"text": "a"}).json()["data"] == {"said": "A"}

    publisher_keys.revoke_publisher_key(key_id=publisher_key.pk, reason="stolen", by=operator.by)
    assert_problem(foreign_caller.invoke(SHOUT, {"text": "a"}, request_id="test-request-2"), 403, "POLICY.DENY_TOOL")


@pytest.mark.req("TOOLS-32")
def test_a_capsule_is_its_tenants_own(caller: Caller, foreign_caller: Caller) -> None:
    id = upload(caller, capsule().data).json()["data"]["id"]

    mine, theirs = caller.get(f"/capsules/{id}/content"), foreign_caller.get(f"/capsules/{id}/content")

    assert mine.content == capsule().data
    assert theirs.status_code == 404
    assert foreign_caller.get(f"/capsules/{id}").status_code == 404
    assert foreign_caller.get("/capsules").json()["data"]["capsules"] == []
    assert caller.get(f"/capsules/{id}").json()["data"]["versions"][0]["tool"] == SHOUT
    assert [each["id"] for each in caller.get("/capsules").json()["data"]["capsules"]] == [id]


@pytest.mark.req("TOOLS-32")
def test_reading_the_code_is_a_fact_and_altered_code_is_not_handed_out(caller: Caller) -> None:
    id = upload(caller, capsule().data).json()["data"]["id"]
    caller.get(f"/capsules/{id}/content")
    assert Fact.objects.filter(kind="capsule.read").count() == 1

    Capsule.objects.update(content=b"altered")

    assert_problem(caller.get(f"/capsules/{id}/content"), 500, "CAPSULE.DAMAGED")
    assert Fact.objects.filter(kind="capsule.read").count() == 1


# Keys.


@pytest.mark.req("TOOLS-32")
def test_keys_over_rest(caller: Caller) -> None:
    added = caller.post("/publisher-keys", {"name": "release", "public_key": public_pem_of()})
    id = added.json()["data"]["id"]
    again = caller.post("/publisher-keys", {"name": "again", "public_key": public_pem_of()})
    same_name = caller.post("/publisher-keys", {"name": "release", "public_key": public_pem_of(ANOTHER)})
    private = caller.post("/publisher-keys", {"name": "private", "public_key": pem_of().decode()})
    revoked = caller.post(f"/publisher-keys/{id}/revoke", {"reason": "An employee left."})
    twice = caller.post(f"/publisher-keys/{id}/revoke", {"reason": "An employee left."})
    back = caller.post("/publisher-keys", {"name": "back", "public_key": public_pem_of()})

    assert (added.status_code, again.status_code, same_name.status_code) == (201, 409, 409)
    assert_problem(private, 422, "SCHEMA.VALIDATION_FAILED")
    assert "private key" in private.json()["detail"]
    assert (revoked.json()["data"]["state"], revoked.json()["data"]["reason"]) == ("revoked", "An employee left.")
    assert (twice.status_code, back.status_code) == (409, 409)
    assert [each["key_id"] for each in caller.get("/publisher-keys").json()["data"]["keys"]] == [
        read_public_key(public_pem_of()).id
    ]


@pytest.mark.req("TOOLS-32")
def test_what_a_tenant_asks_of_capsules_over_rest(caller: Caller) -> None:
    before = caller.get("/publishing").json()["data"]
    changed = caller.put("/publishing", {"signatures_required": True}).json()["data"]

    assert (before, changed) == ({"signatures_required": False}, {"signatures_required": True})
    assert caller.get("/publishing").json()["data"] == changed
    assert leaf_of(Fact.objects.get(kind="publishing.changed"))["data"] == changed
    assert_problem(upload(caller, capsule().data), 403, "CAPSULE.UNSIGNED")


@pytest.mark.req("TOOLS-32")
def test_upload_and_the_service_agree(caller: Caller) -> None:
    done = capsules.upload_capsule(content=capsule().data, by=caller.by)

    assert done.versions[0].capsule == done.capsule
    assert done.versions[0].build_digest == done.capsule.digest
