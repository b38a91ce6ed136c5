"""Pages of the playground: setting it up, conversations with models, and decisions on calls that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from access.consents.services import approve_consent, deny_consent
from access.grants.forms import DecisionForm
from access.models import Consent, ConsentMode, Grant
from access.problems import FailureNotSeen
from invocations.approvals.consent_review import ConsentReview
from invocations.approvals.failed_dry_runs import find_failed_dry_run
from invocations.call_costs.services import find_currency
from invocations.models import Invocation
from invocations.playground import services
from invocations.playground.forms import MessageForm, SetUpForm
from invocations.playground.models import PlaygroundConversation
from invocations.playground.offers import PlaygroundOffer, list_connected_models, load_budgets, load_offer
from invocations.playground.transcript import PLACES, Transcript, find_waiting, sum_conversation
from kernel.components.forms import add_problem, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from invocations.playground.models import Playground
    from invocations.playground.transcript import MessageView

LAST_MESSAGES = 50  # of a conversation on its page
# Ids of the parts of a conversation's page that look again by themselves, and which sides of the last message each shows.
SIDES = {"side-1": (1,), "side-2": (2,)}
COMPOSER = "composer"


# Setting up, beginning.


def _describe_agent(request: ConsoleRequest, playground: Playground) -> dict[str, Any]:
    """What the playground may do and spend: playground, grants, budgets, may_see (what of it has a page for this person)."""
    by = request.principal
    grants = Grant.objects.filter(agent_id=playground.agent_id, revoked_at=None).order_by("-pk")
    return {
        "playground": playground,
        "grants": list(grants) if by.may("grants.view") else [],
        "budgets": load_budgets(playground),
        "currency": find_currency(by.tenant_id),
        "may_see_agent": by.may("agents.view"),
        "may_see_budgets": by.may("budgets.view"),
        "may_see_consents": by.may("consents.view"),
        "may_connect": by.may("models.manage"),
    }


def _render_start(
    request: ConsoleRequest, *, form: MessageForm | None = None, set_up: SetUpForm | None = None, status: int = 200
) -> HttpResponse:
    by = request.principal
    playground = services.find_playground(by.tenant_id)
    context: dict[str, Any] = {"section": "playground", "playground": playground}
    if playground is None:
        models = list_connected_models(by.tenant_id)
        context |= {
            "models": models,
            "set_up": set_up or SetUpForm(models=models),
            "may_set_up": services.may_set_up(by),
            "may_connect": by.may("models.manage"),
        }
    else:
        offer = load_offer(playground)
        rows = PlaygroundConversation.objects.filter(tenant_id=by.tenant_id, person=by.id)
        context |= _describe_agent(request, playground) | {
            "offer": offer,
            "form": form or MessageForm(offer=offer),
            "page": fetch_page(rows, prefix="plc", after=request.GET.get("after", "")),
            "waiting": find_waiting(by),
        }
    return render_page(request, "playground/playground.html", context, status=status)


@require_GET
@needs(services.PERMISSION)
def playground(request: ConsoleRequest) -> HttpResponse:
    """Context: playground (or None). Without one: models, set_up (SetUpForm), may_set_up, may_connect. With one: offer, form
    (MessageForm), page (Page of PlaygroundConversation), waiting, and what :func:`_describe_agent` says.
    """
    return _render_start(request)


@require_POST
@needs("agents.manage")
def playground_set_up(request: ConsoleRequest) -> HttpResponse:
    """POST name, models, tools, money, calls and reason."""
    by = request.principal
    if services.find_playground(by.tenant_id) is not None:
        messages.info(request, gettext("Somebody has set up the playground already."))
        return redirect("playground")
    form = SetUpForm(request.POST, models=list_connected_models(by.tenant_id))
    if submit_form(form, lambda: services.set_up_playground(**form.cleaned_data, by=by)) is not None:
        messages.success(request, gettext("The playground is set up."))
        return redirect("playground")
    return _render_start(request, set_up=form, status=422)


@require_POST
@needs(services.PERMISSION)
def playground_begin(request: ConsoleRequest) -> HttpResponse:
    """POST a message (MessageForm), which begins a conversation."""
    sent, form = _send(request, None)
    return _render_start(request, form=form, status=422) if sent is None else redirect("playground_conversation", sent)


def _send(request: ConsoleRequest, conversation_id: UUID | None) -> tuple[UUID | None, MessageForm | None]:
    """The id of the conversation; or None and the form that says what is in the way."""
    playground = services.find_playground(request.principal.tenant_id)
    offer = load_offer(playground) if playground is not None else PlaygroundOffer()
    form = MessageForm(request.POST, offer=offer)
    try:
        sent = submit_form(
            form,
            lambda: services.send_message(
                form.build_draft(),
                token=form.cleaned_data["token"],
                conversation_id=conversation_id,
                by=request.principal,
            ),
        )
    except services.MessageRefused as refused:
        for model, problem in zip(form.build_draft().models, refused.problems, strict=True):
            add_problem(form, problem, about=model)
        return None, form
    return (None, form) if sent is None else (sent.conversation_id, form)


# A conversation.


def _build_initial(last: MessageView) -> dict[str, Any]:
    """The next message goes where the last one went."""
    models = [side.model for side in last.message.list_sides()]
    return {"model": models[0], "second_model": models[1] if len(models) > 1 else "", "tools": last.tools}


def _add_decision_forms(message: MessageView, failed: tuple[UUID, DecisionForm] | None) -> None:
    """For what this person may decide on; ``failed``: the one that was sent, by the id of its consent."""
    for call in (call for view in message.sides for turn in view.turns for call in turn.proposals if call.may_decide):
        consent = call.consent
        assert consent is not None
        call.modes = ConsentReview(consent).modes
        if failed is not None and failed[0] == consent.pk:
            call.form = failed[1]
        else:
            failed_run = find_failed_dry_run(consent)
            call.form = DecisionForm(
                consent=consent,
                modes=call.modes,
                failed=failed_run.wire_id if failed_run else "",
                auto_id=f"{consent.wire_id}_%s",
            )


def _render_conversation(
    request: ConsoleRequest,
    conversation: PlaygroundConversation,
    *,
    form: MessageForm | None = None,
    decision: tuple[UUID, DecisionForm] | None = None,
) -> HttpResponse:
    """The page; or the part of it that looks again, which reads no more than it shows."""
    by = request.principal
    target = request.htmx.target if request.htmx else ""
    partial = target if target in (*SIDES, COMPOSER) else ""
    rows = services.list_messages(conversation, last=1 if partial else LAST_MESSAGES)
    is_open = rows[-1].is_open
    found = services.find_playground(by.tenant_id)
    assert found is not None
    is_own = conversation.person == by.id
    context: dict[str, Any] = {
        "section": "playground",
        "conversation": conversation,
        "is_open": is_open,
        "is_own": is_own,
        "may_see_consents": by.may("consents.view"),
    }
    if partial != COMPOSER:
        transcript = Transcript(conversation, rows, places=SIDES.get(partial, PLACES), by=by)
        *earlier, last = transcript.messages
        _add_decision_forms(last, decision)
        sides = {view.side.place: view for view in last.sides}
        context |= {
            "earlier": earlier,
            "left_out": rows[0].number > 1,
            "last": last,
            "side_1": sides.get(1),
            "side_2": sides.get(2),
        }
    if partial not in SIDES:
        context |= _describe_agent(request, found) | {"totals": sum_conversation(conversation)}
        if is_own and (form is not None or not is_open):
            offer = load_offer(found)
            (last,) = Transcript(conversation, rows[-1:], places=(), by=by).messages
            context |= {"offer": offer, "form": form or MessageForm(offer=offer, initial=_build_initial(last))}
    status = 422 if form is not None or decision is not None else 200
    return render_page(request, "playground/conversation.html", context, partial=partial, status=status)


def _find_conversation(request: ConsoleRequest, conversation_id: UUID) -> PlaygroundConversation:
    return PlaygroundConversation.objects.visible_to(request.principal).get(pk=conversation_id)


@require_GET
@needs(services.PERMISSION)
def playground_conversation(request: ConsoleRequest, conversation_id: UUID) -> HttpResponse:
    """Context: conversation, earlier (list of MessageView), last (MessageView), side_1 and side_2 of the last (SideView or None),
    left_out (whether there are messages before these), is_open, is_own, totals, offer and form (MessageForm; when nothing is open,
    or one was sent), and what :func:`_describe_agent` says.
    """
    return _render_conversation(request, _find_conversation(request, conversation_id))


@require_POST
@needs(services.PERMISSION)
def playground_send(request: ConsoleRequest, conversation_id: UUID) -> HttpResponse:
    """POST a message (MessageForm), with which the conversation goes on."""
    found = _find_conversation(request, conversation_id)
    services.check_owner(found, by=request.principal)
    sent, form = _send(request, conversation_id)
    return (
        _render_conversation(request, found, form=form) if sent is None else redirect("playground_conversation", sent)
    )


@require_POST
@needs(services.PERMISSION)
def playground_cancel(request: ConsoleRequest, conversation_id: UUID) -> HttpResponse:
    """End what is being answered."""
    if services.cancel_answers(conversation_id=conversation_id, by=request.principal):
        messages.info(request, gettext("The run makes no further calls. What its tools have done stays done."))
    return redirect("playground_conversation", conversation_id)


@require_POST
@needs("consents.decide")
def playground_decide(request: ConsoleRequest, conversation_id: UUID, consent_id: UUID) -> HttpResponse:
    """POST decision (approve, deny) and reason, as on the page of the consent; with approve also mode, amount and unit."""
    by, conversation = request.principal, _find_conversation(request, conversation_id)
    asked = Invocation.objects.filter(run_step__run__playground_side__message__conversation=conversation)
    rows = Consent.objects.visible_to(by).filter(pk__in=asked.values("consent_id"))
    consent = rows.select_related("agent").get(pk=consent_id)
    failed_run = find_failed_dry_run(consent)
    form = DecisionForm(
        request.POST,
        consent=consent,
        modes=ConsentMode.values,
        failed=failed_run.wire_id if failed_run else "",
        auto_id=f"{consent.wire_id}_%s",
    )
    form.fields["decision"].choices = form.fields["decision"].choices[:2]  # type: ignore[attr-defined]
    if form.is_valid():
        decide = {"approve": approve_consent, "deny": deny_consent}[form.cleaned_data["decision"]]
        try:
            decide(consent_id=consent_id, reason=form.cleaned_data["reason"], by=by, **form.read_attenuation())
        except (SchemaInvalid, FailureNotSeen) as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("Your decision and its reason were recorded."))
            return redirect("playground_conversation", conversation_id)
    return _render_conversation(request, conversation, decision=(consent.pk, form))
