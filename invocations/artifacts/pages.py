"""Pages of artifacts: how people look at what a call has left.

Whoever has revealed the values of a call, with a reason, may for two minutes open what it left; each that is opened is a fact with
that reason. The page of the call shows nothing of it before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core import signing
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from invocations.artifacts import services as artifacts
from invocations.artifacts.api import build_download
from invocations.artifacts.models import Artifact
from kernel.http.console import ConsoleRequest, needs

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from invocations.models import Invocation
    from kernel.principal import Principal

SALT = "invocations.artifacts.revealed"
OPEN_S = 120


def list_artifacts(invocation: Invocation, by: Principal) -> list[Artifact]:
    """For those who may reveal or remove them."""
    if not (by.may("evidence.reveal") or by.may("files.manage")):
        return []
    rows = Artifact.objects.filter(invocation_id=invocation.pk, tenant_id=invocation.tenant_id)
    return list(rows.select_related("content").order_by("id"))


def sign_artifact_tokens(rows: list[Artifact], *, reason: str, by: Principal) -> list[dict[str, Any]]:
    """Each with the word that opens it for this person: {row, word}."""
    return [{"row": row, "word": signing.dumps([row.wire_id, by.id, reason], salt=SALT)} for row in rows]


def _reason(word: str, artifact: str, by: Principal) -> str:
    """Why this person opens it; empty when it was not revealed to them, or not lately."""
    try:
        said_artifact, said_by, reason = signing.loads(word, salt=SALT, max_age=OPEN_S)
    except signing.BadSignature:
        return ""
    return str(reason) if (said_artifact, said_by) == (artifact, by.id) else ""


@require_GET
@needs("evidence.reveal")
def artifact_download(request: ConsoleRequest, artifact_id: UUID) -> HttpResponse:
    by, thumbnail = request.principal, "thumbnail" in request.GET
    row = Artifact.objects.get(pk=artifact_id, tenant_id=by.tenant_id)
    reason = _reason(request.GET.get("word", ""), row.wire_id, by)
    if not reason:
        messages.info(request, gettext("Reveal the values of the call first, then open its artifacts."))
        return redirect("invocation", row.invocation_id)
    row, content = artifacts.read_artifact(
        artifact_id=artifact_id, by=by, via="console", thumbnail=thumbnail, reason=reason
    )
    if thumbnail:
        return build_download(f"{row.name}.png", "image/png", content, inline=True)
    return build_download(row.name, row.media_type, content)


@require_POST
@needs("files.manage")
def artifact_remove(request: ConsoleRequest, artifact_id: UUID) -> HttpResponse:
    row = Artifact.objects.get(pk=artifact_id, tenant_id=request.principal.tenant_id)
    artifacts.remove_artifact(artifact_id=artifact_id, by=request.principal)
    messages.success(request, gettext("The artifact was removed."))
    return redirect("invocation", row.invocation_id)
