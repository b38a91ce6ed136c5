"""Endpoint permissions: whether the key carries what an endpoint needs; or the person, where people may ask.

Every API view names its ``required_scope`` (a guard test refuses a view without one), or maps methods to scopes. One that takes
people's sessions names their ``required_permission`` as well; a method without a scope is for people only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission

from kernel.http.api_requests import get_caller
from kernel.principal import ActorKind
from kernel.problems import Forbidden

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class HoldsRequiredScope(BasePermission):
    def has_permission(self, request: Request, view: APIView) -> bool:
        by, person = get_caller(request), get_caller(request).kind is ActorKind.USER
        needed = _of(request, view.required_permission if person else view.required_scope)  # type: ignore[attr-defined]
        if needed is None:
            raise Forbidden("Only people do this, never a key.", remedy="Do it in the console, or with your session.")
        if needed:
            by.check(needed)
        return True


def _of(request: Request, said: str | dict[str, str | None]) -> str | None:
    method = "GET" if request.method == "HEAD" else request.method or ""  # HEAD is answered by the view's get()
    return said if isinstance(said, str) else said.get(method, "")
