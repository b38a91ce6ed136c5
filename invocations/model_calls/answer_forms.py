"""Answer forms: what an answer looks like to whoever asked a model. The way to it is the same for all
(:func:`invocations.model_calls.api.ask_model`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from django.http import HttpResponse
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from invocations.calls import AnsweredCall, BegunCall, CallRefused
    from invocations.model_calls.model_runs import ModelRun


class ModelAnswerForm(Protocol):
    def write_refused(self, request: Request, refused: CallRefused) -> HttpResponse:
        """That the call may not be made."""

    def write_whole(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        """The answer of a call, or what it failed by."""

    def write_stored_stream(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        """The answer of a call that succeeded, as a stream that is there as a whole."""

    def open_stream(self, request: Request, run: ModelRun, begun: BegunCall) -> HttpResponseBase:
        """The answer while it comes. Whoever leaves ends the run."""
