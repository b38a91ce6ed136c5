"""Policies: does a policy come into force by two people, with what it changes known, and at once?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from access.middleware import principal_of_user
from access.models import PolicyState, PolicyVersion
from access.policies import services
from access.policies.cache import compiled_policy, forget_compiled
from access.policies.compiler import BUILTIN
from access.policies.impact import previews
from access.policies.verdict import evaluate_policies
from access.problems import SelfApproval, SimulationStale
from access.roles import HUB_OWNERS, Role
from evidence.models import Fact
from evidence.services import open_free_text
from kernel.canonical import compute_digest
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_caller, make_person
from tests.support.policies import CALL, permits

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
NO_SHOP = {"id": "no-shop", "effect": "forbid", "when": {"tool": {"matches": "shop.*"}}}


def hub_owner(tenant: Tenant, name: str) -> Person:
    person = make_person(tenant, name, Role.OWNER)
    person.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    return type(person)(person.user, principal_of_user(type(person.user).objects.get(pk=person.user.pk), tenant))


@pytest.fixture
def hub_owners(tenant: Tenant) -> tuple[Person, Person]:
    return hub_owner(tenant, "hanna"), hub_owner(tenant, "henry")


def published(document: dict[str, Any], by: Person, second: Person, *, hub: bool = False) -> PolicyVersion:
    draft = services.draft_policy(document=document, by=by.by, hub=hub)
    services.simulate_policy(version_id=draft.pk, by=by.by)
    return services.publish_policy(version_id=draft.pk, reason="It was read.", by=second.by)


def facts_of(version: PolicyVersion) -> list[tuple[str, dict[str, Any]]]:
    rows = Fact.objects.filter(subject=version.wire_id).order_by("id")
    return [(str(row.kind), dict(json.loads(bytes(row.leaf))["data"]) | open_free_text(row)) for row in rows]


@pytest.mark.req("TOOLS-31")
def test_the_whole_way_leaves_facts_with_what_was_known(operator: Person, second_operator: Person) -> None:
    first = published(permits(), operator, second_operator)
    second = published(permits(NO_SHOP), operator, second_operator)
    first.refresh_from_db()

    assert (first.label, first.state, second.label, second.state) == ("tenant@1", "superseded", "tenant@2", "in_force")
    kinds = facts_of(second)
    assert [kind for kind, _ in kinds] == ["policy.drafted", "policy.simulated", "policy.published"]
    told = kinds[-1][1]
    assert told["instead_of"] == "tenant@1"
    assert told["digest"] == second.digest
    assert told["drafted_by"] == operator.by.id
    assert told["analysis"]["narrower"] == 1
    assert told["counts"] == {"same": 0, "now_denied": 0, "now_held": 0, "now_allowed": 0}
    assert second.published_by == second_operator.by.id


@pytest.mark.req("TOOLS-31")
def test_who_drafted_it_cannot_publish_it(operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    services.simulate_policy(version_id=draft.pk, by=operator.by)

    with pytest.raises(SelfApproval):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=operator.by)

    draft.refresh_from_db()
    assert draft.state == PolicyState.DRAFT


@pytest.mark.req("TOOLS-31")
def test_who_controls_the_agent_that_drafted_it_cannot_publish_it(operator: Person, second_operator: Person) -> None:
    caller = make_caller(operator.by, "of-olivia")
    draft = services.draft_policy(document=permits(), by=caller.by)
    services.simulate_policy(version_id=draft.pk, by=caller.by)

    with pytest.raises(SelfApproval):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=operator.by)
    assert (
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by).state
        == PolicyState.IN_FORCE
    )


@pytest.mark.req("TOOLS-15")
def test_an_agent_publishes_nothing_and_rolls_nothing_back(
    caller: Caller, operator: Person, second_operator: Person
) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    services.simulate_policy(version_id=draft.pk, by=operator.by)

    with pytest.raises(Forbidden):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=caller.by)
    first = published(permits(), operator, second_operator)
    published(permits(NO_SHOP), operator, second_operator)
    with pytest.raises(Forbidden):
        services.roll_back_policy(version_id=first.pk, reason="back", by=caller.by)


@pytest.mark.req("TOOLS-31")
def test_a_draft_is_changed_by_its_author_only(operator: Person, second_operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)

    with pytest.raises(Forbidden):
        services.change_draft(version_id=draft.pk, document=permits(NO_SHOP), by=second_operator.by)
    changed = services.change_draft(version_id=draft.pk, document=permits(NO_SHOP), by=operator.by, note="better")
    assert (changed.number, changed.note, len(changed.document["rules"])) == (1, "better", 2)


@pytest.mark.req("TOOLS-31")
def test_nothing_is_published_without_knowing_what_it_changes(operator: Person, second_operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)

    with pytest.raises(SimulationStale, match="was not previewed"):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)
    services.simulate_policy(version_id=draft.pk, by=operator.by)
    services.change_draft(version_id=draft.pk, document=permits(NO_SHOP), by=operator.by)
    with pytest.raises(SimulationStale):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)


@pytest.mark.req("TOOLS-31")
def test_a_preview_is_stale_once_another_policy_is_in_force(operator: Person, second_operator: Person) -> None:
    waiting = services.draft_policy(document=permits(NO_SHOP), by=operator.by)
    services.simulate_policy(version_id=waiting.pk, by=operator.by)
    published(permits(), operator, second_operator)

    with pytest.raises(SimulationStale, match="Another policy came into force"):
        services.publish_policy(version_id=waiting.pk, reason="It was read.", by=second_operator.by)


@pytest.mark.req("TOOLS-31")
def test_a_preview_of_a_tenant_is_stale_once_the_hub_has_another_policy(
    operator: Person, second_operator: Person, hub_owners: tuple[Person, Person]
) -> None:
    waiting = services.draft_policy(document=permits(), by=operator.by)
    services.simulate_policy(version_id=waiting.pk, by=operator.by)
    published(permits(), *hub_owners, hub=True)

    with pytest.raises(SimulationStale):
        services.publish_policy(version_id=waiting.pk, reason="It was read.", by=second_operator.by)


@pytest.mark.req("TOOLS-31")
def test_a_simulation_of_a_text_that_was_changed_meanwhile_is_thrown_away(
    operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    real = previews.build_preview

    def slow(version: PolicyVersion, *, calls: int) -> dict[str, Any]:
        services.change_draft(version_id=draft.pk, document=permits(NO_SHOP), by=operator.by)
        return real(version, calls=calls)

    monkeypatch.setattr(previews, "build_preview", slow)
    with pytest.raises(Conflict, match="changed meanwhile"):
        services.simulate_policy(version_id=draft.pk, by=operator.by)

    draft.refresh_from_db()
    assert draft.simulation is None


@pytest.mark.req("TOOLS-31")
def test_rolling_back_takes_a_second_person_and_a_reason(operator: Person, second_operator: Person) -> None:
    first = published(permits(), operator, second_operator)
    second = published(permits(NO_SHOP), operator, second_operator)

    with pytest.raises(SelfApproval):
        services.roll_back_policy(version_id=first.pk, reason="it broke", by=second_operator.by)
    with pytest.raises(SchemaInvalid):
        services.roll_back_policy(version_id=first.pk, reason=" ", by=operator.by)
    back = services.roll_back_policy(version_id=first.pk, reason="it broke", by=operator.by)
    second.refresh_from_db()

    assert (back.state, back.published_by, second.state) == ("in_force", operator.by.id, "superseded")
    kind, told = facts_of(back)[-1]
    assert kind == "policy.published"
    assert (told["rolled_back"], told["reason"], told["instead_of"]) == (True, "it broke", "tenant@2")
    assert told["analysis"]["wider"] == 1


@pytest.mark.req("TOOLS-31")
def test_only_what_was_in_force_can_be_rolled_back_to(operator: Person, second_operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    current = published(permits(), operator, second_operator)

    for version in (draft, current):
        with pytest.raises(Conflict):
            services.roll_back_policy(version_id=version.pk, reason="back", by=operator.by)


@pytest.mark.req("TOOLS-31")
def test_a_discarded_draft_stays_as_it_is(operator: Person, second_operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    services.discard_draft(version_id=draft.pk, reason="a mistake", by=second_operator.by)

    with pytest.raises(Conflict):
        services.change_draft(version_id=draft.pk, document=permits(), by=operator.by)
    with pytest.raises(Conflict):
        services.simulate_policy(version_id=draft.pk, by=operator.by)
    with pytest.raises(Conflict):
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)
    with pytest.raises(Conflict):
        services.discard_draft(version_id=draft.pk, reason="again", by=operator.by)
    kind, told = facts_of(draft)[-1]
    assert (kind, told["reason"]) == ("policy.discarded", "a mistake")


@pytest.mark.req("TOOLS-31")
def test_what_is_no_policy_is_refused_with_every_mistake(operator: Person) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        services.draft_policy(document={"format": 1, "rules": [{"id": "r", "effect": "allow"}, 5]}, by=operator.by)

    assert [each["pointer"] for each in caught.value.details["findings"]] == ["/rules/0/effect", "/rules/1"]
    assert PolicyVersion.objects.count() == 0


@pytest.mark.req("TOOLS-15")
def test_only_owners_of_the_hub_touch_the_policy_of_the_hub(
    operator: Person, second_operator: Person, hub_owners: tuple[Person, Person], stranger: Person
) -> None:
    with pytest.raises(Forbidden):
        services.draft_policy(document=permits(), by=operator.by, hub=True)
    draft = services.draft_policy(document=permits(), by=hub_owners[0].by, hub=True)
    with pytest.raises(PolicyVersion.DoesNotExist):  # nobody else sees a draft of the hub
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)
    services.simulate_policy(version_id=draft.pk, by=hub_owners[0].by)
    hub = services.publish_policy(version_id=draft.pk, reason="It was read.", by=hub_owners[1].by)

    assert (hub.label, hub.tenant_id) == ("hub@1", None)
    assert PolicyVersion.objects.visible_to(stranger.by).get() == hub
    with pytest.raises(Forbidden):
        services.roll_back_policy(version_id=hub.pk, reason="x", by=operator.by)


@pytest.mark.req("TOOLS-22")
def test_the_policies_of_another_tenant_are_not_found(operator: Person, stranger: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)

    with pytest.raises(PolicyVersion.DoesNotExist):
        services.publish_policy(version_id=draft.pk, reason="x", by=stranger.by)
    with pytest.raises(PolicyVersion.DoesNotExist):
        services.simulate_policy(version_id=draft.pk, by=stranger.by)
    with pytest.raises(PolicyVersion.DoesNotExist):
        services.discard_draft(version_id=draft.pk, reason="x", by=stranger.by)


@pytest.mark.req("TOOLS-31")
def test_a_version_is_compiled_once_and_a_draft_never(operator: Person, second_operator: Person) -> None:
    version = published(permits(NO_SHOP), operator, second_operator)
    draft = services.draft_policy(document=permits(), by=operator.by)

    assert compiled_policy(version.pk) is compiled_policy(version.pk)
    with pytest.raises(PolicyVersion.DoesNotExist):
        compiled_policy(draft.pk)


@pytest.mark.req("TOOLS-15")
def test_a_document_that_is_not_the_published_one_allows_nothing(operator: Person, second_operator: Person) -> None:
    version = published(permits(), operator, second_operator)
    PolicyVersion.objects.filter(pk=version.pk).update(document=permits(NO_SHOP))
    forget_compiled()
    verdict = evaluate_policies([BUILTIN, compiled_policy(version.pk)], CALL)

    assert not verdict.allowed
    assert verdict.explain() == ["tenant@1 cannot be evaluated: its document is not the one that was published."]


@pytest.mark.req("TOOLS-15")
def test_a_document_of_a_later_format_allows_nothing(operator: Person, second_operator: Person) -> None:
    version = published(permits(), operator, second_operator)
    later = {"format": 2, "rules": []}
    PolicyVersion.objects.filter(pk=version.pk).update(document=later, digest=compute_digest(later))
    forget_compiled()

    assert "This hub reads format 1" in compiled_policy(version.pk).broken
    assert not evaluate_policies([compiled_policy(version.pk)], CALL).allowed


@pytest.mark.req("TOOLS-10", "TOOLS-31")
@pytest.mark.django_db(transaction=True)
def test_a_publication_counts_with_the_next_decision_of_another_process(
    operator: Person, second_operator: Person
) -> None:
    """The other process has decided under the first version before the second is published."""
    first = published(permits(), operator, second_operator)
    script = (
        "import sys, django; from django.conf import settings\n"
        "settings.DATABASES['default']['NAME'] = sys.argv[2]\n"
        "django.setup()\n"
        "from access.models import PolicyVersion\n"
        "from access.policies.cache import compiled_policy\n"
        "from access.policies.verdict import evaluate_policies\n"
        "import json; call = json.loads(sys.argv[1])\n"
        "for line in sys.stdin:\n"
        "    version = PolicyVersion.objects.values_list('pk', flat=True).get(state='in_force')\n"
        "    verdict = evaluate_policies([compiled_policy(version)], call)\n"
        "    print(json.dumps([verdict.layers, verdict.allowed]), flush=True)\n"
    )
    name = str(connection.settings_dict["NAME"])
    process = subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(CALL), name],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    try:

        def ask() -> Any:
            print("decide", file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())  # type: ignore[union-attr]

        assert ask() == [["tenant@1"], True]
        published(permits(NO_SHOP), operator, second_operator)
        assert ask() == [["tenant@2"], False]
        services.roll_back_policy(version_id=first.pk, reason="back", by=operator.by)
        assert ask() == [["tenant@1"], True]
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def _environment() -> dict[str, str]:
    """Of a hub in the shape of the database that the tests use."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOOLHUB_TEST")}
    kept["DJANGO_SETTINGS_MODULE"] = "toolhub.settings"
    if connection.vendor == "sqlite":
        return kept
    url = os.environ["TOOLHUB_TEST_DATABASE_URL"]
    return kept | {"TOOLHUB_DATABASE_URL": url, "TOOLHUB_REDIS_URL": "redis://127.0.0.1:1/0"}  # nothing is sent to it


@pytest.mark.req("TOOLS-31")
@pytest.mark.django_db(transaction=True)
def test_two_publications_at_once_leave_one_in_force(operator: Person, second_operator: Person) -> None:
    drafts = [services.draft_policy(document=permits(), by=operator.by) for _ in range(2)]
    for draft in drafts:
        services.simulate_policy(version_id=draft.pk, by=operator.by)
    outcomes: list[str] = []

    def publish(draft: PolicyVersion) -> None:
        try:
            services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)
            outcomes.append("published")
        except (Conflict, SimulationStale) as problem:
            outcomes.append(type(problem).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=publish, args=[draft]) for draft in drafts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert PolicyVersion.objects.filter(state=PolicyState.IN_FORCE).count() == 1
    assert outcomes.count("published") == 1


@pytest.mark.req("TOOLS-31")
def test_numbers_count_within_each_owner(operator: Person, stranger: Person, hub_owners: tuple[Person, Person]) -> None:
    made = [
        services.draft_policy(document=permits(), by=by, hub=hub)
        for by, hub in [(operator.by, False), (operator.by, False), (stranger.by, False), (hub_owners[0].by, True)]
    ]

    assert [each.label for each in made] == ["tenant@1", "tenant@2", "tenant@1", "hub@1"]


@pytest.mark.req("TOOLS-31")
def test_a_fact_of_a_change_that_fails_is_not_left_behind(operator: Person, second_operator: Person) -> None:
    draft = services.draft_policy(document=permits(), by=operator.by)
    services.simulate_policy(version_id=draft.pk, by=operator.by)
    before = Fact.objects.count()
    with pytest.raises(RuntimeError), transaction.atomic():
        services.publish_policy(version_id=draft.pk, reason="It was read.", by=second_operator.by)
        raise RuntimeError

    draft.refresh_from_db()
    assert (draft.state, Fact.objects.count()) == (PolicyState.DRAFT, before)
