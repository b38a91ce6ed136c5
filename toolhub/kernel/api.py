"""Who calls the API?"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rest_framework.request import Request

    from toolhub.kernel.principal import Principal


def caller(request: Request) -> Principal:
    """The authenticated agent. DRF calls it ``user``; here nobody but people are users."""
    return cast("Principal", request.user)
