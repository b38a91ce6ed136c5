"""Playground pages: do people set up the playground, talk, compare, decide and cancel on its pages, and do the pages say what is in
the way?
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from access.agents.services import disable_agent
from access.budgets.services import set_budget
from access.models import Consent
from access.roles import Role
from evidence.models import Snapshot
from evidence.services import compute_fingerprint
from invocations.agent_runs.models import AgentRun
from invocations.model_calls.live_words import get_word_store
from invocations.models import Invocation
from invocations.playground import pages
from invocations.playground.models import Playground, PlaygroundConversation, PlaygroundMessage
from invocations.playground.transcript import Transcript
from tests.conftest import make_person
from tests.integration.invocations.playground.conftest import REASON, Talker
from tests.support.agent_runs import ECHO, propose
from tests.support.connected_models import MODEL
from tests.support.erasures import forget
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = "model.script.other"


def message(**said: Any) -> dict[str, Any]:
    return {"token": str(uuid4()), "text": "Which?", "model": MODEL, "max_tokens": "100", "steps": "5"} | said


def post(person: Person, name: str, *args: Any, data: dict[str, Any] | None = None) -> Any:
    return person.client().post(reverse(name, args=args), data or {})


def see(person: Person, conversation: PlaygroundConversation, **headers: str) -> str:
    answer = person.client().get(reverse("playground_conversation", args=[conversation.pk]), headers=headers)
    assert answer.status_code == 200
    return str(answer.content.decode())


def part(person: Person, conversation: PlaygroundConversation, name: str) -> str:
    return see(person, conversation, **{"HX-Request": "true", "HX-Target": name}).strip()


# Setting up.


@pytest.mark.req("CARD-3")
def test_without_a_model_people_are_told_and_who_may_is_led_to_connect_one(operator: Person, developer: Person) -> None:
    shown = operator.client().get("/playground").content.decode()
    assert "No model is connected yet" in shown
    assert reverse("model_providers") in shown
    assert "Ask somebody who may connect models." in developer.client().get("/playground").content.decode()


@pytest.mark.req("CARD-3")
def test_an_operator_sets_it_up_on_the_page(model: Tool, tenant: Tenant, developer: Person) -> None:
    olga = make_person(tenant, "olga", Role.OPERATOR)
    assert "The playground is not set up yet" in developer.client().get("/playground").content.decode()
    wrong = post(olga, "playground_set_up", data={"name": "playground", "models": [MODEL], "money": "5"})
    assert wrong.status_code == 422
    assert not Playground.objects.exists()

    said = {"name": "playground", "models": [MODEL], "tools": "sample.*", "money": "5", "calls": "9", "reason": REASON}
    assert post(olga, "playground_set_up", data=said).status_code == 302
    shown = olga.client().get("/playground").content.decode()
    assert reverse("agent", args=[Playground.objects.get().agent_id]) in shown
    assert "5.00 USD of 5.00 USD" in shown
    assert "9 of 9 calls" in shown


@pytest.mark.req("CARD-3")
def test_an_expression_that_cannot_be_read_is_said_at_its_field(model: Tool, operator: Person) -> None:
    said = {"name": "playground", "models": [MODEL], "tools": "(((", "money": "5", "reason": REASON}
    answer = post(operator, "playground_set_up", data=said)

    assert answer.status_code == 422
    assert "tools" in answer.context["set_up"].errors
    assert not Playground.objects.exists()


@pytest.mark.req("CARD-3")
def test_a_name_that_is_taken_is_said_at_the_form_and_a_second_set_up_leads_to_the_first(
    playground: Playground, operator: Person
) -> None:
    said = {"name": playground.agent.name, "models": [MODEL], "tools": "", "money": "5", "reason": REASON}
    assert post(operator, "playground_set_up", data=said).status_code == 302
    Playground.objects.all().delete()
    answer = post(operator, "playground_set_up", data=said)

    assert answer.status_code == 422
    assert answer.context["set_up"].non_field_errors()
    assert f'value="{playground.agent.name}"' in answer.content.decode()


@pytest.mark.req("TOOLS-15")
def test_an_auditor_has_no_way_in(playground: Playground, auditor: Person) -> None:
    assert auditor.client().get("/playground").status_code == 403
    assert 'href="/playground"' not in auditor.client().get("/").content.decode()


# Talking.


@pytest.fixture
def talk(dana: Talker, bench: ProviderBench, driver: RunDriver) -> PlaygroundConversation:
    bench.scripts = [propose("a"), text_answer("It is **a**."), text_answer("Because.")]
    answer = post(dana.person, "playground_begin", data=message(tools=[ECHO]))
    assert answer.status_code == 302
    driver.drive()
    return PlaygroundConversation.objects.get()


@pytest.mark.req("CARD-3")
def test_whoever_asked_sees_the_words_of_a_model_while_they_come(
    dana: Talker, bench: ProviderBench, driver: RunDriver, operator: Person
) -> None:
    bench.scripts = [text_answer("Blue, because.")]
    dana.send(answered=False)
    talk, call = PlaygroundConversation.objects.get(), Invocation.objects.get()
    get_word_store().add(call.pk, b"Blue, be", keep_s=60)

    shown = part(dana.person, talk, "side-1")
    assert "Blue, be" in shown
    assert "The model is being asked." in shown

    driver.drive()
    get_word_store().drop(call.pk)
    assert part(dana.person, talk, "side-1").count("Blue, because.") == 1


@pytest.mark.req("CARD-3", "RUN-1")
def test_a_conversation_shows_words_calls_decisions_figures_and_what_is_left(
    talk: PlaygroundConversation, dana: Talker
) -> None:
    shown = see(dana.person, talk)

    run = AgentRun.objects.get()
    for words in ("Which?", "It is **a**.", "Allowed", "sample.tools.echo", reverse("agent_run", args=[run.pk])):
        assert words in shown, words
    assert "97 of 100 calls" in shown
    assert "hx-trigger" not in shown.partition('<div class="talk')[2].partition("</main>")[0]


@pytest.mark.req("CARD-3", "RUN-1")
def test_the_next_message_goes_on_and_the_form_knows_what_was_chosen(
    talk: PlaygroundConversation, dana: Talker
) -> None:
    form = dana.person.client().get(reverse("playground_conversation", args=[talk.pk])).context["form"]
    assert (form["model"].value(), form["tools"].value()) == (MODEL, [ECHO])
    assert post(dana.person, "playground_send", talk.pk, data=message(text="Why?")).status_code == 302
    dana.driver.drive()

    shown = see(dana.person, talk)
    assert shown.index("Which?") < shown.index("Why?") < shown.index("Because.")


@pytest.mark.req("CARD-3")
def test_what_is_missing_in_a_message_is_said_and_its_text_is_kept(dana: Talker) -> None:
    answer = post(dana.person, "playground_begin", data=message(text="Keep me", second_model=MODEL))

    assert answer.status_code == 422
    assert "Choose another model than the first." in answer.content.decode()
    assert "Keep me" in answer.content.decode()
    assert not PlaygroundMessage.objects.exists()


@pytest.mark.req("CARD-3")
def test_an_expression_that_names_no_tool_is_said(dana: Talker) -> None:
    answer = post(dana.person, "playground_begin", data=message(expression="nothing.*"))

    assert answer.status_code == 422
    assert "names no tool" in str(answer.context["form"].errors)


@pytest.mark.req("CARD-3", "TOOLS-29")
def test_a_budget_that_is_used_up_is_said_in_words(dana: Talker, playground: Playground, operator: Person) -> None:
    set_budget(scope="agent", dimension="calls", amount=0, agent_id=playground.agent_id, by=operator.by)
    answer = post(dana.person, "playground_begin", data=message(text="Keep me"))

    assert answer.status_code == 422
    assert "Keep me" in answer.content.decode()
    assert f"{MODEL}: " in answer.context["form"].non_field_errors()[0]
    assert "Used up" in answer.content.decode()


@pytest.mark.req("CARD-3")
def test_a_message_is_kept_in_its_form_while_another_is_answered(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("Slow")]
    talk = dana.send(answered=False).conversation
    answer = post(dana.person, "playground_send", talk.pk, data=message(text="Keep me"))

    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "Keep me" in shown
    assert answer.context["form"].non_field_errors()
    assert not re.search(r'id="composer"[^>]*hx-get', shown)  # or what is typed would be replaced
    dana.driver.drive()


@pytest.mark.req("CARD-3")
def test_a_message_is_kept_in_its_form_where_the_agent_is_disabled(
    dana: Talker, playground: Playground, operator: Person
) -> None:
    disable_agent(agent_id=playground.agent_id, reason=REASON, by=operator.by)
    answer = post(dana.person, "playground_begin", data=message(text="Keep me"))

    assert answer.status_code == 422
    assert "Keep me" in answer.content.decode()


@pytest.mark.req("CARD-3")
def test_a_page_shows_the_last_messages(
    talk: PlaygroundConversation, dana: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Only the last messages are shown here." not in see(dana.person, talk)
    dana.send("Why?", conversation_id=talk.pk)
    monkeypatch.setattr(pages, "LAST_MESSAGES", 1)
    shown = see(dana.person, talk)

    assert "Only the last messages are shown here." in shown
    assert "Why?" in shown
    assert "Which?" not in shown


@pytest.mark.req("CARD-3")
def test_a_part_that_looks_again_reads_what_it_shows(
    dana: Talker, second_model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scripts = [text_answer("From one"), text_answer("From two")]
    talk = dana.send(models=(MODEL, OTHER), answered=False).conversation
    read: list[Any] = []

    class Watched(Transcript):
        def __init__(self, *args: Any, **said: Any) -> None:
            read.append(said.get("places"))
            super().__init__(*args, **said)

    monkeypatch.setattr(pages, "Transcript", Watched)
    for name in ("side-1", "side-2", "composer"):
        part(dana.person, talk, name)
    assert read == [(1,), (2,)]
    dana.driver.drive()


@pytest.mark.req("CARD-3")
def test_two_models_stand_beside_each_other(dana: Talker, second_model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("From one"), text_answer("From two")]
    post(dana.person, "playground_begin", data=message(second_model=OTHER))
    dana.driver.drive()

    talk = PlaygroundConversation.objects.get()
    shown = see(dana.person, talk)
    assert "data-two" in shown
    assert shown.index("From one") < shown.index("From two")
    assert "From two" not in part(dana.person, talk, "side-1")
    assert "From two" in part(dana.person, talk, "side-2")


@pytest.mark.req("CARD-3")
def test_only_what_goes_on_looks_again(dana: Talker, second_model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("From one"), text_answer("From two")]
    post(dana.person, "playground_begin", data=message(second_model=OTHER))
    talk = PlaygroundConversation.objects.get()
    parts = ("side-1", "side-2", "composer")
    assert all("every 2s" in part(dana.person, talk, name) for name in parts)
    dana.driver.drive()

    assert not any("every 2s" in part(dana.person, talk, name) for name in parts)
    assert part(dana.person, talk, "composer").startswith("<div")
    assert 'name="text"' in part(dana.person, talk, "composer")


@pytest.mark.req("CARD-3")
def test_an_answer_is_cancelled(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("Never")]
    post(dana.person, "playground_begin", data=message())
    talk = PlaygroundConversation.objects.get()
    assert post(dana.person, "playground_cancel", talk.pk).status_code == 302
    dana.driver.drive()

    assert AgentRun.objects.get().state == "cancelled"
    assert "Cancelled" in see(dana.person, talk)


# Deciding.


@pytest.fixture
def held(dana: Talker, bench: ProviderBench, enable: Callable[..., Any]) -> PlaygroundConversation:
    enable("write", side_effect="Write", consent={"validity_seconds": 3600})
    bench.scripts = [propose("a", tool="sample.tools.write"), text_answer("Written")]
    post(dana.person, "playground_begin", data=message(tools=["sample.tools.write"]))
    dana.driver.drive()
    return PlaygroundConversation.objects.get()


@pytest.mark.req("CARD-3", "TOOLS-19")
def test_who_sent_it_is_told_that_somebody_else_decides(held: PlaygroundConversation, dana: Talker) -> None:
    shown = see(dana.person, held)

    assert "Somebody who may decide on consents decides on this call." in shown
    assert 'value="approve"' not in shown


@pytest.mark.req("CARD-3", "TOOLS-19")
def test_who_decides_finds_it_approves_in_place_and_comes_back(
    held: PlaygroundConversation, dana: Talker, operator: Person
) -> None:
    assert f"/playground/{held.wire_id}" in operator.client().get("/playground").content.decode()
    shown = see(operator, held)
    assert 'name="mode" value="once"' in shown
    assert "every 2s" not in part(operator, held, "side-1")  # nothing is replaced while a reason is written
    consent = Consent.objects.get()

    assert post(operator, "playground_decide", held.pk, consent.pk, data={"mode": "once"}).status_code == 422
    done = post(operator, "playground_decide", held.pk, consent.pk, data={"mode": "once", "reason": "Fine"})
    assert (done.status_code, done.headers["Location"]) == (302, f"/playground/{held.wire_id}")
    dana.driver.drive()
    shown = see(dana.person, held)
    assert "Approved by" in shown
    assert "Written" in shown


@pytest.mark.req("CARD-3", "TOOLS-19")
def test_what_is_denied_in_place_is_told_with_its_reason(
    held: PlaygroundConversation, dana: Talker, operator: Person
) -> None:
    consent = Consent.objects.get()
    post(operator, "playground_decide", held.pk, consent.pk, data={"decision": "deny", "reason": "Too early"})
    dana.driver.drive()

    shown = see(dana.person, held)
    assert "Denied by" in shown
    assert "Too early" in shown


@pytest.mark.req("TOOLS-19")
def test_nobody_approves_what_they_have_asked_for(held: PlaygroundConversation, dana: Talker, tenant: Tenant) -> None:
    consent = Consent.objects.get()
    said = {"mode": "once", "reason": "Mine"}
    assert post(dana.person, "playground_decide", held.pk, consent.pk, data=said).status_code == 403
    olga = make_person(tenant, "olga", Role.OPERATOR)
    PlaygroundConversation.objects.update(person=olga.by.id)
    Consent.objects.update(user_fingerprint=_fingerprint(olga))

    assert post(olga, "playground_decide", held.pk, consent.pk, data=said).status_code == 403
    assert post(olga, "consent_decide", consent.pk, data=said).status_code == 403
    assert Consent.objects.get().state == "requested"


def _fingerprint(person: Person) -> str:
    return compute_fingerprint(person.by.id.encode(), tenant_id=person.by.tenant_id)


@pytest.mark.req("TOOLS-19")
def test_a_consent_of_another_agent_is_not_decided_here(held: PlaygroundConversation, operator: Person) -> None:
    other = PlaygroundConversation.objects.create(tenant=held.tenant, person=operator.by.id)
    consent = Consent.objects.get()
    said = {"decision": "approve", "reason": "Fine"}

    assert post(operator, "playground_decide", other.pk, consent.pk, data=said).status_code == 404


@pytest.mark.req("CARD-3")
def test_a_page_that_says_what_is_in_the_way_looks_again_where_the_conversation_is(
    held: PlaygroundConversation, dana: Talker, operator: Person
) -> None:
    here = reverse("playground_conversation", args=[held.pk])
    refused = [
        post(operator, "playground_decide", held.pk, Consent.objects.get().pk, data={"decision": "approve"}),
        post(dana.person, "playground_send", held.pk, data=message(text="")),
    ]
    for answer in refused:
        shown = answer.content.decode()
        assert answer.status_code == 422
        assert f'href="{here}"' in shown
        assert set(re.findall(r'hx-get="(/playground[^"]*)"', shown)) == {here}


# Who sees what, and what is left.


@pytest.mark.req("TOOLS-21")
def test_a_conversation_is_its_persons(talk: PlaygroundConversation, operator: Person, stranger: Person) -> None:
    for person in (operator, stranger):
        assert person.client().get(reverse("playground_conversation", args=[talk.pk])).status_code == 404
        assert post(person, "playground_send", talk.pk, data=message()).status_code == 404
    assert Client().get(reverse("playground_conversation", args=[talk.pk])).status_code == 302


@pytest.mark.req("SPEC-10")
def test_what_was_erased_is_shown_as_erased(talk: PlaygroundConversation, dana: Talker, tenant: Tenant) -> None:
    forget(dana.person.by.id, by=make_person(tenant, "olga", Role.OWNER).by)

    assert dana.person.client().get(reverse("playground_conversation", args=[talk.pk])).status_code == 404
    talk.refresh_from_db()
    assert talk.person == "(erased)"
    PlaygroundConversation.objects.update(person=dana.person.by.id)  # as if the row still named them
    shown = see(dana.person, talk)
    assert "Erased, or kept no longer" in shown
    assert "Which?" not in shown
    assert "It is" not in shown


@pytest.mark.req("SPEC-10")
def test_the_page_of_a_run_says_that_what_a_tool_answered_is_gone(
    talk: PlaygroundConversation, auditor: Person
) -> None:
    to = reverse("agent_run", args=[AgentRun.objects.get().pk])
    assert "Erased, or kept no longer" not in auditor.client().get(to).content.decode()
    Snapshot.objects.all().delete()
    Invocation.objects.update(output_digest="")

    shown = auditor.client().get(to).content.decode()
    assert "No tool has answered" not in shown
    assert shown.count("Erased, or kept no longer") == 2  # sources, and what could be revealed


@pytest.mark.req("SPEC-10")
def test_what_is_kept_no_longer_is_shown_so_and_the_model_is_not_told(
    talk: PlaygroundConversation, dana: Talker, bench: ProviderBench
) -> None:
    Snapshot.objects.all().delete()
    assert "Erased, or kept no longer" in see(dana.person, talk)
    post(dana.person, "playground_send", talk.pk, data=message(text="Again"))
    dana.driver.drive()

    said = [each.segments[0].text for each in bench.requests[-1].messages if each.role == "user"]
    assert said == ["Again"]
