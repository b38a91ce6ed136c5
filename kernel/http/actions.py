"""Actions: endpoints that do one thing with one row: POST, a service, and the row as it is then.

Those on one noun share the scope and the form of the answer. Each is a line: what OpenAPI calls it, the service, what it is for. The
service gets what the address and the body name, by these names, and who calls as ``by``. Where what it returns is more than the row, a
table of its own writes that. A class of its own stays what looks something up first (a version by its number), or is for people only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.status import HTTP_204_NO_CONTENT

from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import StatedReasonSerializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

    from kernel.http.base_serializers import StrictSerializer

R = TypeVar("R")


class ActionEndpoint(Endpoint):
    """One action, made by :meth:`ActionTable.build_view`."""

    required_scope: ClassVar[str]
    service: ClassVar[Callable[..., Any]]
    body: ClassVar[type[StrictSerializer] | None]
    renamed: ClassVar[Mapping[str, str]]


@dataclass(frozen=True)
class ActionTable(Generic[R]):
    """What the actions on one noun share. ``show`` writes the row that a service returns, as ``answer`` describes it; both None: the
    actions leave no row, and answer 204.

    ``module``: where they stand. ``renamed``: what the address and the body name → what the services call it, where that is another
    name. ``headers``: of each answer.
    """

    module: str
    scope: str
    answer: Any
    show: Callable[[R], Any] | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def build_view(
        self,
        operation_id: str,
        service: Callable[..., R],
        description: str,
        *,
        body: type[StrictSerializer] | None = StatedReasonSerializer,
        status: int = 200,
    ) -> type[ActionEndpoint]:
        status = HTTP_204_NO_CONTENT if self.show is None else status

        @extend_schema(operation_id=operation_id, request=body, responses={status: self.answer})
        def post(view: ActionEndpoint, request: Request, **address: Any) -> Response:
            asked = address | (read_body(request, view.body) if view.body else {})
            named = {view.renamed.get(name, name): value for name, value in asked.items()}
            row = view.service(**named, by=get_caller(request))
            if self.show is None:
                return Response(status=status, headers=dict(self.headers))
            return Response(ResponseEnvelope(data=self.show(row)).to_json(), status=status, headers=dict(self.headers))

        said = {
            "__doc__": description,
            "__module__": self.module,
            "required_scope": self.scope,
            "service": staticmethod(service),
            "body": body,
            "renamed": self.renamed,
            "post": post,
        }
        return type(f"{operation_id.title().replace('_', '')}View", (ActionEndpoint,), said)
