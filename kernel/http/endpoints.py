"""Endpoints: views of the API that take the query parameters they declare, and no others.

``query`` is the one declaration: the OpenAPI document lists what it names (:mod:`kernel.http.endpoint_schemas`), and what it does
not name is refused before the view is asked.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from django.db import transaction
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import clone_request
from rest_framework.response import Response
from rest_framework.views import APIView

from kernel.http.api_requests import get_caller
from kernel.http.api_versions import API_VERSION, HEADER_API_VERSION, check_api_version
from kernel.http.base_serializers import QuerySerializer
from kernel.http.conditional_requests import answer_condition, check_if_match, take_turn
from kernel.http.exception_handlers import API_PREFIX
from kernel.http.pagination import Page, fetch_page
from kernel.problems import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request

M = TypeVar("M", bound="Model")
P = ParamSpec("P")
READS = ("GET", "HEAD")


class Endpoint(APIView):
    """``query``: what GET may be asked, and ``query_of_changes`` what all else may. ``asked``: what it was asked, read and checked.
    ``cursor``: the prefix of the ids that the pages of a list go on by. ``conditional``: a change may be asked for on condition that
    nobody else has made one (``If-Match``).
    """

    query: ClassVar[type[QuerySerializer]] = QuerySerializer
    query_of_changes: ClassVar[type[QuerySerializer]] = QuerySerializer
    cursor: ClassVar[str] = ""
    conditional: ClassVar[bool] = False
    asked: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A method that is not there is refused as such; who may not ask is told that before what is wrong with the question."""
        method = str(request.method).lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(str(request.method))
        super().initial(request, *args, **kwargs)
        if method != "options":
            kind = self.query if request.method in READS else self.query_of_changes
            asked = dict(request.query_params.lists())
            # Most requests ask nothing, of endpoints that take nothing.
            self.asked = kind.read(asked) if asked or kind is not QuerySerializer else {}
            check_api_version(request.headers.get(HEADER_API_VERSION, ""))
            if request.method not in READS:
                wanted = request.headers.get("If-Match", "")
                if wanted and not self.conditional:
                    raise PreconditionFailed("No change at this address can be made to depend on what was read.")
                if wanted:  # it tells what stands there
                    self.check_permissions(clone_request(request, "GET"))
                if self.conditional:
                    setattr(self, method, partial(self._change_in_turn, getattr(self, method), wanted))

    @transaction.atomic
    def _change_in_turn(
        self, change: Callable[..., HttpResponse], wanted: str, request: Request, **address: Any
    ) -> HttpResponse:
        """Carry a change out after those before it; on a condition, while a GET is still answered as the caller has seen."""
        take_turn(str(get_caller(request).tenant_id), request.path)
        if wanted:
            self.asked = self.query.read({})
            seen = super().finalize_response(request, self.get(request, **address))  # type: ignore[attr-defined]
            check_if_match(wanted, seen.render() if isinstance(seen, Response) else seen)
        return change(request, **address)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """With the version of the API that has answered, and the tag of what was read."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.path.startswith(API_PREFIX):
            response.headers[HEADER_API_VERSION] = API_VERSION
        if request.method in READS:
            response = answer_condition(
                request._request, response.render() if isinstance(response, Response) else response
            )
        return response

    def page_of(self, rows: QuerySet[M]) -> Page[M]:
        """The page of a list that was asked for, by an endpoint whose ``query`` is a ``PageSerializer``."""
        return fetch_page(rows, prefix=self.cursor, after=self.asked.get("after", ""), limit=self.asked["limit"])


def refuse_query(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """The same for a document that a function answers: it takes no parameters."""

    @wraps(view)
    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        QuerySerializer.read(dict(request.GET.lists()))
        return view(request, *args, **kwargs)

    return checked
