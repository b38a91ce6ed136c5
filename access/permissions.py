"""Does the key carry what this endpoint needs?

Every API view names its ``required_scope`` (a guard test refuses a view without one), or maps methods to scopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission

from toolhub.kernel.api import caller

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class HoldsRequiredScope(BasePermission):
    def has_permission(self, request: Request, view: APIView) -> bool:
        scope: str | dict[str, str] = view.required_scope  # type: ignore[attr-defined]
        method = "GET" if request.method == "HEAD" else request.method or ""  # HEAD is answered by the view's get()
        needed = scope if isinstance(scope, str) else scope.get(method, "")
        if needed:
            caller(request).check(needed)
        return True
