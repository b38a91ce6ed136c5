"""Playground services: how one is set up, and how a person's message becomes runs of its agent.

The runs are those of any agent (:mod:`invocations.agent_runs`), submitted as the playground's agent on behalf of the person, who is
the user of their envelope. So a person may do here what the agent may do, and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from access.agents.services import create_agent
from access.budgets.services import set_budget
from access.grants.services import give_grant
from access.models import BudgetScope, Dimension, Tenant
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.playgrounds import CreatedPlayground, SentMessage
from invocations.accept.recorded_refusals import RecordedRefusal
from invocations.agent_runs import orchestration
from invocations.agent_runs.limits import RunLimits
from invocations.agent_runs.models import AgentRun, AgentRunState
from invocations.agent_runs.services import RunQuestion, cancel_run, submit_run
from invocations.call_costs.services import find_currency
from invocations.playground.history import build_history
from invocations.playground.models import Playground, PlaygroundConversation, PlaygroundMessage, PlaygroundSide
from invocations.playground.problems import PlaygroundAnswering, PlaygroundNotSetUp
from kernel.http.envelopes import RequestEnvelope
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, Problem, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

AGENT_NAME = "playground"
NEEDED_TO_SET_UP = ("agents.manage", "grants.give", "budgets.manage")
PERMISSION = "playground.use"
SCOPES = frozenset({"models:call", "invocations:create", "invocations:read"})
MAX_TEXT = 20_000
MAX_MODELS = 2
PURPOSE = "A message in the playground."
MAX_TOKENS = 500


# Its agent.


def find_playground(tenant_id: UUID) -> Playground | None:
    return Playground.objects.filter(tenant_id=tenant_id).select_related("agent").first()


def may_set_up(by: Principal) -> bool:
    return all(by.may(permission) for permission in NEEDED_TO_SET_UP)


@transaction.atomic
def set_up_playground(
    *, name: str, models: Sequence[str], tools: str, money: int, calls: int | None, reason: str, by: Principal
) -> Playground:
    """Make the agent that people talk through, with a grant for models, one for tools, and what it may spend in a day.

    ``tools``: an expression; empty: none. ``money``: in millionths of the currency.
    """
    for permission in NEEDED_TO_SET_UP:
        by.check(permission)
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    if find_playground(by.tenant_id) is not None:
        raise Conflict(
            "This tenant has a playground already.", remedy="Change the grants and budgets of its agent instead."
        )
    if not models:
        raise SchemaInvalid.at("/models", "Choose the models that people may talk with.")
    agent = create_agent(name=name, by=by)
    give_grant(agent_id=agent.pk, tools=" | ".join(models), reason=reason, by=by)
    if tools.strip():
        give_grant(agent_id=agent.pk, tools=tools, reason=reason, by=by)
    amounts = {Dimension.MONEY: money, Dimension.CALLS: calls}
    for dimension, amount in amounts.items():
        if amount is not None:
            set_budget(
                scope=BudgetScope.AGENT, dimension=dimension, amount=amount, agent_id=agent.pk, reason=reason, by=by
            )
    made = Playground.objects.create(tenant_id=by.tenant_id, agent=agent, created_by=by.id)
    evidence.record(
        kind=Kind.PLAYGROUND_CREATED, subject=made.wire_id, actor=by, data=CreatedPlayground(agent=agent.wire_id)
    )
    return made


def build_playground_principal(playground: Playground) -> Principal:
    """Its agent, which has no key: people come in by their session."""
    agent = playground.agent
    return Principal(
        kind=ActorKind.AGENT,
        id=agent.wire_id,
        name=agent.name,
        tenant_id=agent.tenant_id,
        allowed=SCOPES,
        agent_id=agent.pk,
    )


def check_in_use(playground: Playground) -> None:
    if playground.agent.disabled_at is not None:
        raise Conflict(
            f"The agent of the playground, {playground.agent.name}, is disabled.",
            remedy="Ask whoever manages agents to enable it.",
        )


# Messages.


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """What a person wants to say to one model or two. ``tools``: ids and expressions. ``purpose``: for who decides on held calls."""

    text: str
    models: tuple[str, ...]
    tools: tuple[str, ...] = ()
    max_tokens: int = MAX_TOKENS
    limits: RunLimits = field(default_factory=RunLimits)
    purpose: str = ""


class MessageRefused(Exception):
    """No model may be asked this. That it was sent and that each was refused is written down; the message is not kept."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        super().__init__(problems[0].detail)


def list_messages(conversation: PlaygroundConversation, *, last: int | None = None) -> list[PlaygroundMessage]:
    """All of them, or the ``last`` ones, with ``sides``, each with its run."""
    rows = PlaygroundMessage.objects.filter(conversation=conversation).order_by("-number")
    return list(rows.prefetch_related("sides__run")[:last])[::-1]


def check_owner(conversation: PlaygroundConversation, *, by: Principal) -> None:
    if conversation.person != by.id:
        raise Forbidden(
            "Only whoever began this conversation goes on with it.", remedy="Begin a conversation of your own."
        )


def check_can_send(conversation: PlaygroundConversation, *, by: Principal) -> None:
    """To one's own conversation, once the last message was answered."""
    check_owner(conversation, by=by)
    if find_open_runs(conversation):
        raise PlaygroundAnswering(PlaygroundAnswering.title())


def find_open_runs(conversation: PlaygroundConversation) -> list[AgentRun]:
    rows = AgentRun.objects.filter(playground_side__message__conversation=conversation, state=AgentRunState.RUNNING)
    return list(rows.order_by("id"))


def _check_draft(draft: MessageDraft) -> None:
    if not draft.text.strip():
        raise SchemaInvalid.at("/text", "Write a message.")
    if len(draft.text) > MAX_TEXT:
        raise SchemaInvalid.at("/text", f"A message has at most {MAX_TEXT:,} characters.")
    if not 1 <= len(draft.models) <= MAX_MODELS or len(set(draft.models)) != len(draft.models):
        raise SchemaInvalid.at("/model", "Choose one model, or two that differ.")


def send_message(
    draft: MessageDraft, *, token: UUID, by: Principal, conversation_id: UUID | None = None
) -> PlaygroundMessage:
    """Send it to each of its models, in a conversation of one's own or in a new one. Sent again, it is the same message."""
    by.check(PERMISSION)
    _check_draft(draft)
    playground = find_playground(by.tenant_id)
    if playground is None:
        raise PlaygroundNotSetUp()
    check_in_use(playground)
    try:
        with transaction.atomic():
            sent = _find_sent(token, by=by) or _write_message(draft, playground, conversation_id, token=token, by=by)
    except IntegrityError:
        earlier = _find_sent(token, by=by)  # two raced with one form; the other has it
        if earlier is None:
            raise
        sent = earlier
    if isinstance(sent, MessageRefused):
        raise sent  # here, so that what was written down of the refusals stays
    for side in sent.sides.all():
        if side.run_id is not None:
            orchestration.continue_run(side.run_id)
    return sent


def _find_sent(token: UUID, *, by: Principal) -> PlaygroundMessage | None:
    rows = PlaygroundMessage.objects.filter(token=token, conversation__tenant_id=by.tenant_id)
    return rows.filter(conversation__person=by.id).select_related("conversation").first()


def _write_message(
    draft: MessageDraft, playground: Playground, conversation_id: UUID | None, *, token: UUID, by: Principal
) -> PlaygroundMessage | MessageRefused:
    if conversation_id is None:
        conversation = PlaygroundConversation(tenant_id=by.tenant_id, person=by.id)
    else:
        rows = PlaygroundConversation.objects.filter(tenant_id=by.tenant_id).select_for_update(no_key=True)
        conversation = rows.get(pk=conversation_id)
        # Whoever had the lock before may have sent this very form.
        if (sent := _find_sent(token, by=by)) is not None:
            return sent
        check_can_send(conversation, by=by)
    before = [] if conversation_id is None else list_messages(conversation)
    asked = [
        _ask(draft, model, place, build_history(before, place), playground, conversation, token=token, by=by)
        for place, model in enumerate(draft.models, 1)
    ]
    problems = [each for each in asked if isinstance(each, Problem)]
    message = PlaygroundMessage(conversation=conversation, number=len(before) + 1, token=token)
    _record_sent(message, draft, playground, asked, by=by)
    if len(problems) == len(asked):
        return MessageRefused(problems)
    if conversation_id is None:
        conversation.save(force_insert=True)
    message.save(force_insert=True)
    for place, (model, each) in enumerate(zip(draft.models, asked, strict=True), 1):
        became = {"reason": each.reason} if isinstance(each, Problem) else {"run": each, "model": each.model}
        PlaygroundSide.objects.create(**({"message": message, "place": place, "model": model} | became))
    return message


def _record_sent(
    message: PlaygroundMessage,
    draft: MessageDraft,
    playground: Playground,
    asked: Sequence[AgentRun | Problem],
    *,
    by: Principal,
) -> None:
    """Who has sent it, also of one that is refused at each model and has no row."""
    evidence.record(
        kind=Kind.PLAYGROUND_MESSAGE_SENT,
        subject=message.wire_id,
        actor=by,
        data=SentMessage(
            conversation=message.conversation.wire_id,
            agent=playground.agent.wire_id,
            models=list(draft.models),
            runs=["" if isinstance(each, Problem) else each.wire_id for each in asked],
        ),
    )


def _ask(
    draft: MessageDraft,
    model: str,
    place: int,
    history: list[dict[str, object]],
    playground: Playground,
    conversation: PlaygroundConversation,
    *,
    token: UUID,
    by: Principal,
) -> AgentRun | Problem:
    question = {"role": "user", "segments": [{"type": "text", "text": draft.text}]}
    arguments: dict[str, object] = {"messages": [*history, question], "max_tokens": draft.max_tokens}
    if draft.tools:
        arguments["tools"] = list(draft.tools)
    envelope = RequestEnvelope(
        request_id=f"{token.hex}-{place}",
        actor={"type": "user", "id": by.id},
        user_id=by.id,
        session_id=conversation.wire_id,
        currency=find_currency(by.tenant_id),
        idempotency_key=f"{token} {place}",  # the blank keeps it apart from every key that a caller can send
        on_consent="hold",
        purpose=draft.purpose.strip() or PURPOSE,
    )
    principal = build_playground_principal(playground)
    try:
        return submit_run(RunQuestion(model, arguments, draft.limits), envelope, by=principal).run
    except RecordedRefusal as refused:
        return refused.problem


def cancel_answers(*, conversation_id: UUID, by: Principal) -> int:
    """End the runs of one's own conversation that go on; how many. What their tools have done stays done."""
    by.check(PERMISSION)
    conversation = PlaygroundConversation.objects.visible_to(by).get(pk=conversation_id)
    if conversation.person != by.id:
        raise Forbidden("Only whoever sent a message cancels it here.", remedy="End its run on the page of the run.")
    found = [run for run in find_open_runs(conversation) if run.cancel_asked_at is None]
    return sum(_cancel_open_run(run, by=by) for run in found)


def _cancel_open_run(run: AgentRun, *, by: Principal) -> bool:
    try:
        cancel_run(run_id=run.pk, by=by)
    except Conflict:
        return False  # it has ended meanwhile
    orchestration.continue_run(run.pk)
    return True
