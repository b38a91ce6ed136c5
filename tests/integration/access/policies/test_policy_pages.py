"""Policy pages: can people read, draft, try, publish and roll back policies in the console?"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.utils import translation

from access.models import PolicyState, PolicyVersion
from access.policies import services
from access.policies.forms import RULE_FORMS
from access.policies.impact.outcomes import describe_value
from access.policies.language import validate_policy
from access.policies.sentences import describe_witness
from access.policies.verdict import evaluate_policies
from kernel.ids import encode
from tests.integration.access.policies.test_policies import NO_SHOP, hub_owner, published
from tests.integration.access.policies.test_policy_simulation import began
from tests.support.policies import CALL, compiled, permits

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(operator: Person) -> PolicyVersion:
    return services.draft_policy(document=permits(NO_SHOP), note="for a test", by=operator.by)


def page(person: Person, path: str, status: int = 200) -> str:
    answer = person.client().get(path)
    assert answer.status_code == status, answer.content[:2000]
    return html.unescape(answer.content.decode())


def send(person: Person, path: str, status: int = 302, **fields: Any) -> str:
    answer = person.client().post(path, fields)
    assert answer.status_code == status, answer.content.decode()[-3000:]
    return html.unescape(answer.content.decode())


@pytest.mark.req("TOOLS-31")
def test_the_list_says_what_is_in_force(operator: Person, second_operator: Person) -> None:
    before = page(operator, "/policies")
    assert "built in" in before
    assert "No policy was drafted yet" in before
    published(permits(NO_SHOP), operator, second_operator)
    after = page(operator, "/policies")

    assert "Forbids calls where tool matches shop.*." in after
    assert "tenant@1" in after
    assert "No version matches these filters" in page(operator, "/policies?state=discarded")
    assert page(operator, "/policies?state=in_force&layer=tenant").count('class="rl"') == 1


@pytest.mark.req("TOOLS-31")
def test_who_may_only_look_is_offered_nothing_to_do(auditor: Person, draft: PolicyVersion) -> None:
    shown = page(auditor, f"/policies/{draft.wire_id}")

    assert "no-shop" in shown
    assert "You do not have permission to publish policies." in shown
    for action in ("Edit as text", "Add a rule", "Discard…", "Remove"):
        assert action not in shown
    assert "Preview the impact</button>" not in page(auditor, f"/policies/{draft.wire_id}/impact")
    for path in ("edit", "rules/new/deny"):
        page(auditor, f"/policies/{draft.wire_id}/{path}", 403)
    for path in ("preview", "publish", "discard", "rules/remove", "roll-back"):
        send(auditor, f"/policies/{draft.wire_id}/{path}", 403)


@pytest.mark.req("TOOLS-31")
def test_a_draft_is_typed_and_a_wrong_text_stays_with_its_findings(operator: Person) -> None:
    wrong = '{"format": 1, "rules": [{"id": "r", "effect": "forbid", "when": {"hours": {"equals": 1}}}]}'
    shown = send(operator, "/policies/new", 422, text=wrong)
    assert wrong in shown
    assert "/rules/0/when/hours" in shown
    assert "Did you mean hour?" in shown
    assert "- not yaml: [" in send(operator, "/policies/new", 422, text="- not yaml: [")
    assert PolicyVersion.objects.count() == 0

    send(operator, "/policies/new", text="format: 1\nrules:\n  - id: all\n    effect: permit\n", note="mine")
    made = PolicyVersion.objects.get()
    assert (made.document, made.note) == ({"format": 1, "rules": [{"id": "all", "effect": "permit"}]}, "mine")
    assert "id: all" in page(operator, f"/policies/{made.wire_id}/edit?as=yaml")
    assert '"id": "all"' in page(operator, f"/policies/{made.wire_id}/edit")
    assert "twice" in send(operator, f"/policies/{made.wire_id}/edit", 422, text='{"format": 1, "format": 1}')
    send(operator, f"/policies/{made.wire_id}/edit", text=json.dumps(permits()))
    made.refresh_from_db()
    assert made.document == permits()


@pytest.mark.req("TOOLS-31")
def test_a_draft_starts_from_any_version_that_can_be_seen(
    operator: Person, draft: PolicyVersion, stranger: Person
) -> None:
    assert "no-shop" in page(operator, f"/policies/new?from={draft.wire_id}")
    assert "It starts with the rules of tenant@1" in page(operator, f"/policies/new?from={draft.wire_id}")
    page(stranger, f"/policies/new?from={draft.wire_id}", 404)
    page(operator, "/policies/new?from=pol_1", 404)


@pytest.mark.req("TOOLS-31")
def test_only_its_author_is_offered_to_change_a_draft(second_operator: Person, draft: PolicyVersion) -> None:
    assert "Edit as text" not in page(second_operator, f"/policies/{draft.wire_id}")
    page(second_operator, f"/policies/{draft.wire_id}/edit", 403)
    page(second_operator, f"/policies/{draft.wire_id}/rules/new/deny", 403)


FORMS: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("allow", {"tools": "*"}, [{"id": "permit-1", "effect": "permit", "when": {}}]),
    (
        "deny",
        {"tools": "shop.* & ~tag:a", "agent": "robot", "id": "no-shop", "note": "why"},
        [
            {
                "id": "no-shop-1",
                "effect": "forbid",
                "when": {"tool": {"matches": "shop.* & ~tag:a"}, "agent_name": {"equals": "robot"}},
                "note": "why",
            }
        ],
    ),
    (
        "ceiling",
        {"tools": "*", "capabilities": '{"tmp": 1024}', "memory_mib": "64", "timeout_ms": "500"},
        [
            {
                "id": "ceiling-1",
                "effect": "ceiling",
                "when": {},
                "capabilities": {"tmp": 1024},
                "limits": {"timeout_ms": 500, "memory_bytes": 67108864},
            }
        ],
    ),
    (
        "consent",
        {"tools": "*", "mode": "period", "hours": "2"},
        [{"id": "consent-1", "effect": "consent", "when": {}, "consent": {"mode": "period", "validity_s": 7200}}],
    ),
    (
        "obligation",
        {"tools": "*", "action": "mask", "detector": "email", "on_failure": "degrade"},
        [
            {
                "id": "oblige-1",
                "effect": "oblige",
                "when": {},
                "obligations": [{"action": "mask", "detector": "email", "on_failure": "degrade"}],
            }
        ],
    ),
    (
        "price",
        {"tools": "*", "amount": "0.0025"},
        [{"id": "price-1", "effect": "price", "when": {}, "amount_micros": 2500}],
    ),
    (
        "hours",
        {"tools": "*", "first": "8", "last": "17", "weekdays": ["1", "5"]},
        [
            {"id": "forbid-1", "effect": "forbid", "when": {"hour": {"not": {"at_least": 8, "at_most": 17}}}},
            {"id": "forbid-2", "effect": "forbid", "when": {"weekday": {"not": {"in": [1, 5]}}}},
        ],
    ),
    (
        "hours",
        {"tools": "*", "first": "22", "last": "5"},
        [{"id": "forbid-1", "effect": "forbid", "when": {"hour": {"at_least": 6, "at_most": 21}}}],
    ),
    (
        "model",
        {"tools": "*"},
        [{"id": "forbid-1", "effect": "forbid", "when": {"model_compatible": {"equals": False}}}],
    ),
    (
        "model",
        {"tools": "*", "unnamed": "on"},
        [{"id": "forbid-1", "effect": "forbid", "when": {"model_compatible": {"has": True, "equals": False}}}],
    ),
    (
        "isolation",
        {"tools": "*", "level": "cold"},
        [{"id": "isolation-1", "effect": "isolation", "when": {}, "level": "cold"}],
    ),
    (
        "isolation",
        {"tools": "*", "level": "single", "untrusted": "on"},
        [{"id": "isolation-1", "effect": "isolation", "when": {}, "level": "single", "untrusted": True}],
    ),
    (
        "isolation",
        {"tools": "*", "level": "", "untrusted": "on"},
        [{"id": "isolation-1", "effect": "isolation", "when": {}, "untrusted": True}],
    ),
]


@pytest.mark.req("TOOLS-31")
def test_every_usual_rule_has_a_form_that_is_tried_here() -> None:
    assert {kind for kind, _, _ in FORMS} == set(RULE_FORMS)


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(("kind", "fields", "made"), FORMS)
def test_a_form_adds_its_rules_to_the_draft(
    operator: Person, draft: PolicyVersion, kind: str, fields: dict[str, Any], made: list[dict[str, Any]]
) -> None:
    path = f"/policies/{draft.wire_id}/rules/new/{kind}"
    assert "Add to the draft" in page(operator, path)
    send(operator, path, **fields)
    draft.refresh_from_db()

    assert draft.document["rules"][2:] == made
    assert [each for each in validate_policy(draft.document) if each.severity == "error"] == []
    assert page(operator, f"/policies/{draft.wire_id}").count("Remove") >= 2 + len(made)


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("deny", {"tools": "shop &"}, "At character"),
        ("ceiling", {"tools": "*"}, "Enter capabilities or at least one limit."),
        ("ceiling", {"tools": "*", "capabilities": "{"}, "This is not valid JSON"),
        ("ceiling", {"tools": "*", "capabilities": "[]"}, "These capabilities cannot be read"),
        ("obligation", {"tools": "*", "action": "mask", "on_failure": "deny"}, "Choose either what or where"),
        ("hours", {"tools": "*", "first": "0", "last": "23"}, "no rule is needed"),
        ("isolation", {"tools": "*", "level": ""}, "Choose a level, or tick the box."),
        ("price", {"tools": "*", "amount": "-1"}, "greater than or equal to 0"),
    ],
)
def test_a_form_that_makes_no_rule_keeps_what_was_typed(
    operator: Person, draft: PolicyVersion, kind: str, fields: dict[str, Any], said: str
) -> None:
    shown = send(operator, f"/policies/{draft.wire_id}/rules/new/{kind}", 422, **fields)

    assert said in shown
    assert f'value="{fields["tools"]}"' in shown
    draft.refresh_from_db()
    assert len(draft.document["rules"]) == 2


@pytest.mark.req("TOOLS-31")
def test_hours_over_night_are_the_hours_that_were_chosen() -> None:
    form = RULE_FORMS["hours"]({"tools": "*", "first": "22", "last": "5"})
    assert form.is_valid()
    policy = compiled(permits(*form.rules(set())))

    assert [hour for hour in range(24) if evaluate_policies([policy], CALL | {"hour": hour}).allowed] == [
        0,
        1,
        2,
        3,
        4,
        5,
        22,
        23,
    ]


@pytest.mark.req("TOOLS-31")
def test_there_is_no_form_of_another_kind(operator: Person, draft: PolicyVersion) -> None:
    page(operator, f"/policies/{draft.wire_id}/rules/new/magic", 404)


@pytest.mark.req("TOOLS-31")
def test_a_rule_is_taken_out(operator: Person, draft: PolicyVersion) -> None:
    send(operator, f"/policies/{draft.wire_id}/rules/remove", rule="no-shop")

    draft.refresh_from_db()
    assert [rule["id"] for rule in draft.document["rules"]] == ["all"]


@pytest.mark.req("TOOLS-31")
def test_the_impact_is_previewed_by_one_and_published_by_another(
    operator: Person, second_operator: Person, draft: PolicyVersion, tenant: Tenant
) -> None:
    call = began(tenant.pk, agent_name="robot")
    unknown = page(second_operator, f"/policies/{draft.wire_id}/impact")
    assert "The impact of this draft was not previewed." in unknown
    assert "Publish tenant@1" not in unknown

    send(operator, f"/policies/{draft.wire_id}/preview", calls="100")
    mine = page(operator, f"/policies/{draft.wire_id}/impact")
    assert "You drafted this policy, so somebody else must publish it." in mine
    assert "Publish tenant@1" not in mine
    theirs = page(second_operator, f"/policies/{draft.wire_id}/impact")
    assert f"/invocations/{encode('inv', call)}" in theirs
    assert "tenant#no-shop" in theirs
    assert "Calls like this were allowed and become denied." in theirs
    assert "Publish tenant@1" in theirs

    assert "0 the same, <b>1 now denied</b>, 0 now held for consent, 0 now allowed." in theirs
    send(second_operator, f"/policies/{draft.wire_id}/publish", 422)
    send(second_operator, f"/policies/{draft.wire_id}/publish", reason="The shop is closed.")
    draft.refresh_from_db()
    assert draft.state == PolicyState.IN_FORCE
    assert "Calls like this were allowed" in page(operator, f"/policies/{draft.wire_id}/impact")


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize("changed", ["draft", "preview"])
def test_what_was_changed_after_the_publisher_opened_it_is_not_published(
    operator: Person, second_operator: Person, draft: PolicyVersion, changed: str
) -> None:
    send(operator, f"/policies/{draft.wire_id}/preview", calls="100")
    opened = page(second_operator, f"/policies/{draft.wire_id}/impact")
    seen = re.findall(r'name="seen" value="([^"]+)"', opened)
    if changed == "draft":
        services.change_draft(version_id=draft.pk, document=permits(), by=operator.by)
    send(operator, f"/policies/{draft.wire_id}/preview", calls="99")

    agreed: dict[str, Any] = {"reason": "The shop is closed.", "seen": seen}
    refused = send(second_operator, f"/policies/{draft.wire_id}/publish", 409, **agreed)
    assert "was changed after you opened it" in refused
    draft.refresh_from_db()
    assert draft.state == PolicyState.DRAFT
    now = re.findall(r'name="seen" value="([^"]+)"', page(second_operator, f"/policies/{draft.wire_id}/impact"))
    send(second_operator, f"/policies/{draft.wire_id}/publish", **agreed | {"seen": now})
    draft.refresh_from_db()
    assert draft.state == PolicyState.IN_FORCE


@pytest.mark.req("TOOLS-31")
def test_publishing_an_own_or_unknown_draft_is_refused_with_a_sentence(
    operator: Person, second_operator: Person, draft: PolicyVersion
) -> None:
    assert "was not previewed" in send(second_operator, f"/policies/{draft.wire_id}/publish", 409)
    assert "somebody else must publish it" in send(operator, f"/policies/{draft.wire_id}/publish", 403)


@pytest.mark.req("TOOLS-31")
def test_a_preview_of_too_many_calls_is_refused_on_the_page(operator: Person, draft: PolicyVersion) -> None:
    shown = send(operator, f"/policies/{draft.wire_id}/preview", 422, calls="100001")

    assert 'value="100001"' in shown


@pytest.mark.req("TOOLS-31")
def test_discarding_and_rolling_back_ask_for_a_reason(
    operator: Person, second_operator: Person, draft: PolicyVersion
) -> None:
    assert "Discard this draft?" in send(operator, f"/policies/{draft.wire_id}/discard", 422)
    send(operator, f"/policies/{draft.wire_id}/discard", reason="a mistake")
    first = published(permits(), operator, second_operator)
    published(permits(NO_SHOP), operator, second_operator)

    assert "Roll back to it…" in page(operator, f"/policies/{first.wire_id}")
    assert "so somebody else must take it back" in page(second_operator, f"/policies/{first.wire_id}")
    assert "Put tenant@2 in force again?" in send(operator, f"/policies/{first.wire_id}/roll-back", 422)
    send(operator, f"/policies/{first.wire_id}/roll-back", reason="it broke")
    first.refresh_from_db()
    assert first.state == PolicyState.IN_FORCE


@pytest.mark.req("TOOLS-31")
def test_owners_of_the_hub_draft_for_the_hub(operator: Person, tenant: Tenant) -> None:
    owner = hub_owner(tenant, "hanna")
    assert "The whole hub" in page(owner, "/policies/new")
    send(owner, "/policies/new", layer="hub", text=json.dumps(permits()))
    draft = PolicyVersion.objects.get()

    assert draft.label == "hub@1"
    assert 'name="layer"' not in page(operator, "/policies/new")
    page(operator, f"/policies/{draft.wire_id}", 404)
    send(owner, f"/policies/{draft.wire_id}/preview", calls="10")
    assert "Compared with" in page(owner, f"/policies/{draft.wire_id}/impact")


@pytest.mark.req("TOOLS-31")
def test_another_tenant_finds_no_page_of_a_policy(stranger: Person, draft: PolicyVersion) -> None:
    for path in ("", "/impact", "/edit", "/rules/new/deny"):
        page(stranger, f"/policies/{draft.wire_id}{path}", 404)
    for path in ("preview", "publish", "discard", "rules/remove", "roll-back"):
        send(stranger, f"/policies/{draft.wire_id}/{path}", 404, reason="x", calls="5")


@pytest.mark.req("TOOLS-31")
def test_sentences_are_in_the_reader_s_words_and_nothing_typed_is_markup(operator: Person) -> None:
    nasty = {
        "id": "x",
        "effect": "forbid",
        "when": {"agent_name": {"equals": "<script>alert(1)</script>"}},
        "note": "<b>",
    }
    draft = services.draft_policy(document=permits(nasty), by=operator.by)
    answer = operator.client().get(f"/policies/{draft.wire_id}").content.decode()

    assert "<script>alert" not in answer
    assert "&lt;script&gt;" in answer


@pytest.mark.req("CARD-3")
def test_what_a_rule_limits_is_said_in_units_that_people_use(operator: Person) -> None:
    client = operator.client()
    english = client.get("/policies").content.decode()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    chinese = client.get("/policies").content.decode()

    assert "temporary files at most 32 MiB, time at most 30 s, memory at most 512 MiB" in english
    assert "临时文件不超过 32 MiB" in chinese
    assert not {"33554432", "timeout_ms", "max_bytes_in"} & set(re.findall(r"\w+", english + chinese))


def test_a_changed_bound_is_said_in_units_that_people_use() -> None:
    bound = {"capabilities": ["fs:read:/data", "tmp:1048576"], "limits": {"timeout_ms": 1500}}

    with translation.override("en"):
        assert describe_value("ceiling", bound, currency="EUR") == (
            "read files below /data, temporary files at most 1 MiB, time at most 1.50 s"
        )
        assert describe_value("ceiling", {"capabilities": None, "limits": {}}, currency="EUR") == "any capability"
        assert describe_value("ceiling", {"capabilities": [], "limits": {}}, currency="EUR") == "no capability"


@pytest.mark.parametrize(
    ("micros", "said"), [(2500, "0.0025 EUR"), (0, "0.00 EUR"), (1_234_567_000_000, "1,234,567.00 EUR")]
)
def test_a_charge_is_said_to_the_last_place_with_its_currency(micros: int, said: str) -> None:
    with translation.override("en"):
        assert describe_value("price", micros, currency="EUR") == said


@pytest.mark.req("CARD-3")
def test_what_a_rule_charges_names_the_currency_of_the_tenant(operator: Person) -> None:
    version = services.draft_policy(document=permits(NO_SHOP), by=operator.by)

    form = page(operator, f"/policies/{version.wire_id}/rules/new/price")
    send(operator, f"/policies/{version.wire_id}/rules/new/price", tools="*", amount="0.0025")

    assert "In USD." in form
    assert "Charges 0.0025 USD for every call." in page(operator, f"/policies/{version.wire_id}")


def test_a_call_that_shows_a_change_is_described_in_words_of_people() -> None:
    seen = {
        "tool": "shop.a",
        "tags": ["new", "x"],
        "side_effect": "Write",
        "hour": 0,
        "user_present": True,
        "client_app": None,
    }

    with translation.override("en"):
        english = describe_witness(seen)
    with translation.override("zh-hans"):
        chinese = describe_witness(seen)

    assert english == [
        ("tool", "shop.a"),
        ("tags of the tool", "new, x"),
        ("side effect", "Write"),
        ("hour of the day (UTC)", "0"),
        ("a user is named", "yes"),
        ("client application", "—"),
    ]
    assert [value for _, value in chinese][1:5] == ["new、x", "写入", "0", "是"]
