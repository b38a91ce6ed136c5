"""Policy API: can programs read, check, draft and try policies, and decide nothing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.policies import services
from kernel.principal import Principal
from tests.conftest import make_caller
from tests.integration.access.policies.test_policies import NO_SHOP, hub_owner, published
from tests.support.calls import assert_problem
from tests.support.policies import permits

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def put(caller: Caller, path: str, body: Any) -> Any:
    return Client().put(f"/api/v1{path}", body, content_type="application/json", headers=caller.headers())


def drafted(caller: Caller, document: Any = None, **more: Any) -> dict[str, Any]:
    answer = caller.post("/policies", {"document": document or permits(NO_SHOP), **more})
    assert answer.status_code == 201, answer.json()
    data: dict[str, Any] = answer.json()["data"]
    assert answer.headers["Location"] == f"/api/v1/policies/{data['id']}"
    return data


@pytest.mark.req("TOOLS-31")
def test_a_draft_is_made_changed_tried_and_discarded(caller: Caller) -> None:
    made = drafted(caller, note="for a test")
    assert (made["label"], made["state"], made["layer"], made["rules"]) == ("tenant@1", "draft", "tenant", 2)
    assert made["preview_stale"] == "The impact of this draft was not previewed."

    changed = put(caller, f"/policies/{made['id']}", {"document": permits()}).json()["data"]
    assert (changed["rules"], changed["note"]) == (1, "for a test")

    tried = caller.post(f"/policies/{made['id']}/simulate", {"calls": 5}).json()["data"]
    assert tried["preview_stale"] is None
    assert tried["preview"]["counts"] == {"same": 0, "now_denied": 0, "now_held": 0, "now_allowed": 0}
    assert tried["preview"]["analysis"]["complete"] is True

    gone = caller.post(f"/policies/{made['id']}/discard", {"reason": "enough"}).json()["data"]
    assert gone["state"] == "discarded"
    read = caller.get(f"/policies/{made['id']}").json()["data"]
    assert (read["state"], read["document"]) == ("discarded", permits())


@pytest.mark.req("TOOLS-31")
def test_what_is_wrong_with_a_document_is_said_with_pointers(caller: Caller) -> None:
    body = assert_problem(
        caller.post("/policies", {"document": {"format": 1, "rules": [{"id": "r", "effect": "alow"}]}}),
        422,
        "SCHEMA.VALIDATION_FAILED",
    )
    [finding] = body["error"]["details"]["findings"]
    assert (finding["pointer"], finding["fix"]) == (
        "/rules/0/effect",
        "Use one of: permit, forbid, consent, ceiling, isolation, oblige, price, degrade.",
    )

    checked = caller.post("/policies/check", {"document": {"format": 1, "rules": []}}).json()["data"]
    assert (checked["sound"], [each["severity"] for each in checked["findings"]]) == (True, ["warning"])
    assert caller.get("/policies").json()["data"]["policies"] == []


@pytest.mark.req("TOOLS-31")
def test_the_list_is_filtered_and_refuses_unknown_filters(
    caller: Caller, operator: Person, second_operator: Person, tenant: Tenant
) -> None:
    published(permits(), operator, second_operator)
    published(permits(), hub_owner(tenant, "hanna"), hub_owner(tenant, "henry"), hub=True)
    drafted(caller)

    def labels(query: str) -> list[str]:
        return [each["label"] for each in caller.get(f"/policies{query}").json()["data"]["policies"]]

    assert labels("") == ["tenant@2", "hub@1", "tenant@1"]
    assert labels("?layer=hub") == ["hub@1"]
    assert labels("?state=draft&layer=tenant") == ["tenant@2"]
    for query in ("?state=live", "?layer=world", "?after=pol_x"):
        assert_problem(caller.get(f"/policies{query}"), 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-31")
def test_two_versions_are_compared_with_witnesses(caller: Caller, operator: Person, second_operator: Person) -> None:
    first = published(permits(NO_SHOP), operator, second_operator)
    second = published(permits(), operator, second_operator)
    found = caller.get(f"/policies/{second.wire_id}/analysis?against={first.wire_id}").json()["data"]

    [shift] = found["shifts"]
    assert (shift["aspect"], shift["direction"], shift["before"], shift["after"]) == (
        "call", "wider", "denied", "allowed",
    )  # fmt: skip
    assert shift["witness"]["tool"].startswith("shop.")
    assert caller.get(f"/policies/{first.wire_id}/analysis").json()["data"]["shifts"][0]["direction"] == "narrower"
    assert_problem(caller.get(f"/policies/{first.wire_id}/analysis?against=pol_1"), 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-31")
def test_each_endpoint_asks_for_its_scope(operator: Person) -> None:
    reader = make_caller(operator.by, "reader", scopes=("policies:read",))
    drafter = make_caller(operator.by, "drafter", scopes=("policies:draft",))
    made = drafted(drafter)

    assert reader.get(f"/policies/{made['id']}").status_code == 200
    assert reader.get("/policies/schema").json()["data"]["title"] == "Policy"
    for answer in (
        reader.post("/policies", {"document": permits()}),
        reader.post("/policies/check", {"document": permits()}),
        put(reader, f"/policies/{made['id']}", {"document": permits()}),
        reader.post(f"/policies/{made['id']}/simulate", {}),
        reader.post(f"/policies/{made['id']}/discard", {"reason": "x"}),
        drafter.get("/policies"),
        drafter.get(f"/policies/{made['id']}"),
        drafter.get(f"/policies/{made['id']}/analysis"),
    ):
        assert_problem(answer, 403, "AUTH.FORBIDDEN")


@pytest.mark.req("TOOLS-31")
def test_an_agent_does_not_draft_for_the_hub_and_sees_no_drafts_of_it(caller: Caller, tenant: Tenant) -> None:
    assert_problem(caller.post("/policies", {"document": permits(), "layer": "hub"}), 403, "AUTH.FORBIDDEN")
    draft = services.draft_policy(document=permits(), by=hub_owner(tenant, "hanna").by, hub=True)

    assert_problem(caller.get(f"/policies/{draft.wire_id}"), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("TOOLS-31")
def test_the_calls_of_other_tenants_in_a_preview_of_the_hub_are_not_shown(caller: Caller, tenant: Tenant) -> None:
    version = published(permits(), hub_owner(tenant, "hanna"), hub_owner(tenant, "henry"), hub=True)

    assert version.simulation is not None
    assert caller.get(f"/policies/{version.wire_id}").json()["data"]["preview"] is None


@pytest.mark.req("TOOLS-31")
def test_another_tenant_s_policy_is_not_found(caller: Caller, foreign_caller: Caller) -> None:
    made = drafted(caller)

    for answer in (
        foreign_caller.get(f"/policies/{made['id']}"),
        foreign_caller.get(f"/policies/{made['id']}/analysis"),
        put(foreign_caller, f"/policies/{made['id']}", {"document": permits()}),
        foreign_caller.post(f"/policies/{made['id']}/simulate", {}),
        foreign_caller.post(f"/policies/{made['id']}/discard", {"reason": "x"}),
    ):
        assert_problem(answer, 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("TOOLS-31")
def test_a_draft_of_another_agent_is_not_changed(caller: Caller, tenant: Tenant) -> None:
    other = make_caller(Principal.system("test", tenant_id=tenant.pk), "other")
    made = drafted(caller)

    assert_problem(put(other, f"/policies/{made['id']}", {"document": permits()}), 403, "AUTH.FORBIDDEN")


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(
    "body", [{}, {"document": permits(), "extra": 1}, {"document": permits(), "layer": "world"}, []]
)
def test_a_body_of_another_form_is_refused(caller: Caller, body: Any) -> None:
    assert_problem(caller.post("/policies", body), 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize("calls", [0, 100_001, "many"])
def test_a_simulation_has_bounds(caller: Caller, calls: Any) -> None:
    made = drafted(caller)

    assert_problem(caller.post(f"/policies/{made['id']}/simulate", {"calls": calls}), 422, "SCHEMA.VALIDATION_FAILED")
