"""Tries: how a person makes a call from the page of a tool, and which calls were made so.

It is the call of an agent on behalf of the person, by the one way in (:func:`invocations.services.begin_call`). A try is known by its
``request_id``, which begins as no caller outside the hub can write one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import get_language, to_locale

from evidence.services import compute_user_fingerprint
from invocations.call_costs.services import find_currency
from invocations.calls import CallRequest
from invocations.models import Invocation
from invocations.playground.services import PERMISSION
from invocations.services import invoke_tool
from invocations.tries.callers import build_caller
from kernel.http.envelopes import RequestEnvelope
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.models import InvocationQuerySet
    from kernel.principal import Principal
    from unitools.manifest import Manifest

MARK = "try "  # of a request_id and a key; a blank is in none that a caller sends
SCOPE = "invocations:create"
HARMLESS = frozenset({"None", "Read"})
PURPOSE = "Somebody tries the tool in the console."
WAIT_S = 3.0  # afterwards the page looks again by itself
LAST = 10


@dataclass(frozen=True, slots=True)
class TryDraft:
    """``caller``: the id of the agent. ``confirmed``: what was typed to say that it may take effect."""

    tool: str
    arguments: dict[str, Any]
    caller: str
    is_dry: bool = True
    purpose: str = ""
    confirmed: str = ""


def takes_effect(manifest: Manifest, *, is_dry: bool) -> bool:
    """Whether a try has to be confirmed: it does something outside the tool's own code that reading does not."""
    return not is_dry and manifest.side_effect not in HARMLESS


def check_confirmed(draft: TryDraft, manifest: Manifest) -> None:
    if not takes_effect(manifest, is_dry=draft.is_dry):
        return
    if draft.confirmed.strip() != draft.tool:
        raise SchemaInvalid.at("/confirmed", "Type the id of the tool: this call takes effect.")
    if not draft.purpose.strip():
        raise SchemaInvalid.at("/purpose", "Say what the call is for; it is kept as evidence.")


def make_try(draft: TryDraft, manifest: Manifest, *, token: UUID, by: Principal) -> Invocation:
    """Make the call and wait for its end for a moment. The same form with the same content, sent twice, makes one call.

    Raises :class:`invocations.calls.CallRefused` where the answer is no; that is written down as of any call.
    """
    by.check(PERMISSION)
    check_confirmed(draft, manifest)
    caller = build_caller(draft.caller, by=by)
    content = json.dumps([draft.tool, draft.arguments, draft.caller, draft.is_dry], sort_keys=True)
    envelope = RequestEnvelope(
        request_id=f"{MARK}{token.hex}",
        actor={"type": "user", "id": by.id},
        user_id=by.id,
        locale=to_locale(get_language() or settings.LANGUAGE_CODE).replace("_", "-"),
        currency=find_currency(by.tenant_id),
        timezone=settings.TIME_ZONE,
        dry_run=draft.is_dry,
        idempotency_key=f"{MARK}{token.hex} {sha256(content.encode()).hexdigest()[:16]}",
        on_consent="hold",
        purpose=draft.purpose.strip() or PURPOSE,
    )
    call = CallRequest(tool=draft.tool, arguments=draft.arguments, envelope=envelope, scope=SCOPE, wait_s=WAIT_S)
    return invoke_tool(call, by=caller).invocation


def select_tries(tool: str, *, by: Principal) -> InvocationQuerySet:
    """The tries that this person has made of a tool."""
    mine = compute_user_fingerprint(by.id, tenant_id=by.tenant_id)
    rows = Invocation.objects.filter(tenant_id=by.tenant_id, user_fingerprint=mine, tool=tool)
    return rows.filter(request_id__startswith=MARK)


def list_last_tries(tool: str, *, by: Principal) -> list[Invocation]:
    return list(select_tries(tool, by=by).select_related("agent", "version").order_by("-id")[:LAST])
