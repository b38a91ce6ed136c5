"""URL elicitation: how a person is asked, in the client that they sit at, to agree to a call.

They are shown the address of the request in the console, where somebody who may decides; the hub never asks for the word itself in
a client, whose user need not be who may give it. A client of 2026-07-28 gets the address in place of a result and calls again; an
older one gets an error that carries it; one that shows no addresses gets it as text for its model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import UrlElicitationRequiredError
from mcp_types import ElicitRequest, ElicitRequestURLParams, InputRequiredResult

if TYPE_CHECKING:
    from kernel.problems import Problem

KEY = "consent"  # of the one thing that is asked for


def build_elicitation(tool: str, *, url: str, consent: str = "") -> ElicitRequestURLParams:
    message = f"{tool} needs the consent of a person. Open the page, read what is to be done, and decide."
    return ElicitRequestURLParams(message=message, url=url, elicitation_id=consent or None)


def elicit_consent(problem: Problem, tool: str, *, modern: bool) -> InputRequiredResult | None:
    """None where there is nothing to show; raises the error that older clients know."""
    url = problem.details.get("url")
    if not url:
        return None
    if not modern:
        raise UrlElicitationRequiredError(
            [build_elicitation(tool, url=url, consent=problem.details["consent"])], problem.detail
        )
    return InputRequiredResult(input_requests={KEY: ElicitRequest(params=build_elicitation(tool, url=url))})


def build_input_request(tool: str, *, url: str) -> dict[str, Any]:
    """The same for a task that waits."""
    request = ElicitRequest(params=build_elicitation(tool, url=url))
    return {KEY: request.model_dump(by_alias=True, mode="json", exclude_none=True)}
