"""Consent elicitation: how a person is asked, in the client that they sit at, to see to it that a call may be made.

They are shown the address of the request in the console, where somebody who may decides; the hub never takes the word itself from
a client, whose user need not be who may give it. A client of 2026-07-28 gets the address in place of a result and calls again; an
older one gets an error that carries it. A client that shows forms and no addresses shows a form that has the address in its words;
when that is accepted the hub looks again whether there is a consent, else the call is not made. One that shows nothing gets it as text
for its model.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from mcp import UrlElicitationRequiredError
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    JSONRPCRequest,
)

from access.server_accounts.problems import AccountRequired
from invocations.answer.wake_ups import get_waker
from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from mcp.server.context import HandlerResult

    from invocations.mcp.request_context import McpRequest
    from kernel.problems import Problem

CONSENT = "consent"  # names the one thing that is asked for
FORM = "consent-"  # begins the ids of requests that older clients are sent
FORM_WAIT_S = 600.0
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class ShownForm:
    """What an older client is to show, and what is answered where it cannot, or where there is no consent then either."""

    params: ElicitRequestFormParams
    refusal: HandlerResult


def say_call(sentence: str) -> str:
    """The call as the person in the console reads it too, where the tool's manifest has a sentence for it.

    It stands behind what the hub itself says: whatever the agent has sent, the question and its address were read before.
    """
    return f" The call, with the agent's values in quotation marks: {sentence}" if sentence else ""


def build_elicitation(tool: str, *, url: str, consent: str = "", sentence: str = "") -> ElicitRequestURLParams:
    message = f"{tool} needs the consent of a person. Open the page, read what is to be done, and decide."
    return ElicitRequestURLParams(message=message + say_call(sentence), url=url, elicitation_id=consent or None)


def build_url_params(problem: Problem, tool: str, *, url: str, sentence: str = "") -> ElicitRequestURLParams:
    """What is missing is a consent, which somebody gives, or an account, which the person at the client connects."""
    if isinstance(problem, AccountRequired):
        message = f"{tool} asks its server as you. Open the page and connect your account there."
        return ElicitRequestURLParams(message=message, url=url, elicitation_id=problem.details.get("account"))
    return build_elicitation(tool, url=url, consent=problem.details["consent"], sentence=sentence)


def build_form(tool: str, *, url: str, sentence: str = "", for_account: bool = False) -> ElicitRequestFormParams:
    """There is nothing to fill in: what counts is what is decided on the page."""
    message = (
        f"{tool} asks its server as you. Open {url} and connect your account there. Then come back and accept, and the call goes on."
        if for_account
        else f"{tool} needs the consent of a person who may give it. Open {url}, read what is to be done, and decide there. "
        f"Then come back and accept, and the call goes on.{say_call(sentence)}"
    )
    return ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": {}})


def elicit_consent(problem: Problem, tool: str, *, modern: bool, sentence: str = "") -> InputRequiredResult | None:
    """None where there is nothing to show; raises the error that older clients know."""
    url = problem.details.get("url")
    if not url:
        return None
    params = build_url_params(problem, tool, url=url, sentence=sentence)
    if not modern:
        raise UrlElicitationRequiredError([params], problem.detail)
    return InputRequiredResult(input_requests={CONSENT: ElicitRequest(params=params)})


def elicit_by_form(
    problem: Problem, tool: str, *, modern: bool, refusal: HandlerResult, sentence: str = ""
) -> InputRequiredResult | ShownForm | None:
    """None where there is nothing to show."""
    url = problem.details.get("url")
    if not url:
        return None
    params = build_form(tool, url=url, sentence=sentence, for_account=isinstance(problem, AccountRequired))
    if modern:
        return InputRequiredResult(input_requests={CONSENT: ElicitRequest(params=params)})
    return ShownForm(params, refusal)


def build_input_request(tool: str, *, url: str) -> dict[str, Any]:
    """The same for a task that waits."""
    request = ElicitRequest(params=build_elicitation(tool, url=url))
    return {CONSENT: request.model_dump(by_alias=True, mode="json", exclude_none=True)}


def is_declined(said: object) -> bool:
    """What a client of 2026-07-28 was told by its user, who was shown the page; nothing where it does not say."""
    return isinstance(said, ElicitResult) and said.action != "accept"


async def show_form(arrival: McpRequest, form: ShownForm) -> bool:
    """Ask an older client, on the stream of its call; whether it says that its user has accepted."""
    id = uuid4()
    request = JSONRPCRequest(
        jsonrpc="2.0",
        id=f"{FORM}{id.hex}",
        method="elicitation/create",
        params=form.params.model_dump(by_alias=True, mode="json", exclude_none=True),
    )
    with ExitStack() as stack:
        # In a thread, since the first one of a process opens the connection that wake-ups come through.
        accepted, declined = await arrival.within(
            lambda: [stack.enter_context(get_waker().listen(each)) for each in (id, _id_of_no(id))]
        )
        if not await arrival.answer.push(request.model_dump_json(by_alias=True, exclude_none=True)):
            return False
        until = time.monotonic() + FORM_WAIT_S
        while not (accepted.was_poked or declined.was_poked) and time.monotonic() < until:
            await accepted.wait_async(LOOK_S)
        return accepted.was_poked


def _id_of_no(form: UUID) -> UUID:
    """What is woken where a form is not accepted: a wake-up carries nothing but an id."""
    return UUID(int=form.int ^ 1)


def read_form_answer(message: Any) -> UUID | None:
    """What a client's answer to a form wakes; None for every other message."""
    if not isinstance(message, dict) or "method" in message or not {"result", "error"} & message.keys():
        return None
    id = message.get("id")
    if not isinstance(id, str) or not id.startswith(FORM):
        return None
    try:
        form = UUID(hex=id.removeprefix(FORM))
    except ValueError:
        return None
    result = message.get("result")
    is_accepted = isinstance(result, dict) and result.get("action") == "accept"
    return form if is_accepted else _id_of_no(form)


def note_form_answer(id: UUID) -> None:
    """In a thread. Whichever process shows the form hears of it."""
    try:
        get_waker().wake(id)
    finally:
        release_connection()
