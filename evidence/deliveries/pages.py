"""Pages of deliveries: the one that shows a receiver's signing secret, for the only time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.http.console import ConsoleRequest, render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpResponse


def render_secret(
    request: ConsoleRequest,
    secret: str,
    *,
    section: str,
    of: str,
    address: str,
    trail: Sequence[tuple[str, str]],
    name: str = "",
) -> HttpResponse:
    """``of``, ``name``, ``address``: the receiver; ``trail``: labels and addresses of the way to it, its own page last."""
    context = {"section": section, "secret": secret, "of": of, "name": name, "address": address, "trail": trail}
    return render_page(request, "deliveries/signing_secret.html", context)
