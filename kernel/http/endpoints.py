"""Endpoints: views of the API that take the query parameters they declare, and no others.

``query`` is the one declaration: the OpenAPI document lists what it names (:mod:`kernel.http.endpoint_schemas`), and what it does
not name is refused before the view is asked.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from rest_framework.views import APIView

from kernel.http.base_serializers import QuerySerializer
from kernel.http.pagination import Page, fetch_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request

M = TypeVar("M", bound="Model")
P = ParamSpec("P")
READS = ("GET", "HEAD")


class Endpoint(APIView):
    """``query``: what GET may be asked. ``asked``: what it was asked, read and checked. ``cursor``: the prefix of the ids that the
    pages of a list go on by.
    """

    query: ClassVar[type[QuerySerializer]] = QuerySerializer
    cursor: ClassVar[str] = ""
    asked: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who may not ask is told that first; a method that is not there is refused as such."""
        super().initial(request, *args, **kwargs)
        if request.method and hasattr(self, request.method.lower()):
            kind = self.query if request.method in READS else QuerySerializer
            asked = dict(request.query_params.lists())
            # Most requests ask nothing, of endpoints that take nothing.
            self.asked = kind.read(asked) if asked or kind is not QuerySerializer else {}

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
