"""Progress of submissions: how far a version has come, what is missing until calls get it, and who does that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from access.models import Grant
from kernel.database.connections import database_time
from registry.dependencies.states import IN_WORK
from registry.installations.services import present_secrets
from registry.installations.setup import missing_setup
from registry.models import (
    Decision,
    Dependencies,
    DependencyState,
    Installation,
    InstallationState,
    ToolState,
    ToolVersion,
    VersionState,
)
from registry.reviews.services import approvals_missing
from registry.versions.compiler import compiled_version
from unitools.expressions import parse_cached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.principal import Principal

MOST_GRANTS = 1_000  # of a tenant, the newest, that are asked whether they cover a tool


@dataclass(frozen=True, slots=True)
class MissingPart:
    """``who`` does it: a sentence; ``url`` and ``action``: where this very person does it."""

    what: str
    who: str = ""
    url: str = ""
    action: str = ""


@dataclass(slots=True)
class SubmissionProgress:
    """``missing``: in the order in which it is done; the first is the next step."""

    version: ToolVersion
    missing: list[MissingPart] = field(default_factory=list)
    note: str = ""  # of whoever refused it
    is_in_use: bool = False  # calls get it in this tenant

    @property
    def next_step(self) -> MissingPart | None:
        return self.missing[0] if self.missing else None


def list_progress(versions: Iterable[ToolVersion], *, by: Principal) -> list[SubmissionProgress]:
    """Of versions with ``tool`` and ``reviews``."""
    rows = list(versions)
    installed = {
        row.tool_id: row
        for row in Installation.objects.visible_to(by)
        .filter(tool__in={version.tool_id for version in rows})
        .exclude(state=InstallationState.REMOVED)
        .select_related("version")
    }
    needed = {row.version_id: row for row in Dependencies.objects.filter(version__in=rows)}
    grants = (
        Grant.objects.in_force(database_time()).filter(tenant_id=by.tenant_id, agent__disabled_at=None).order_by("-pk")
    )
    expressions = set(grants.values_list("tools", flat=True)[:MOST_GRANTS])
    present = present_secrets(by.tenant_id)
    return [
        _describe(version, installed.get(version.tool_id), needed.get(version.pk), expressions, present, by=by)
        for version in rows
    ]


def _describe(
    version: ToolVersion,
    installation: Installation | None,
    dependencies: Dependencies | None,
    expressions: set[str],
    present: set[str],
    *,
    by: Principal,
) -> SubmissionProgress:
    made = SubmissionProgress(version)
    made.is_in_use = (
        installation is not None
        and installation.version_id == version.pk
        and installation.state == InstallationState.ENABLED
    )
    if version.yanked_at is not None:
        made.missing = [_submit_next(gettext("It was yanked: %(reason)s") % {"reason": version.yank_reason})]
        return made
    if version.review_state == VersionState.REFUSED:
        refusals = [review for review in version.reviews.all() if review.decision == Decision.REFUSE]
        made.note = refusals[-1].note if refusals else ""
        made.missing = [_submit_next(gettext("It was refused."))]
        return made
    found = [
        _find_dependencies(version, dependencies),
        _find_review(version, by=by),
        _find_enabling(version, installation, by=by),
        _find_setup(version, installation, present, by=by),
        _find_grant(version, expressions, by=by),
    ]
    made.missing = [each for each in found if each is not None]
    return made


def _submit_next(what: str) -> MissingPart:
    return MissingPart(
        what,
        gettext("A version never changes: raise its number and submit it again."),
        reverse("submission_new"),
        gettext("Submit the next version"),
    )


def _find_dependencies(version: ToolVersion, row: Dependencies | None) -> MissingPart | None:
    if row is None or row.state in (DependencyState.READY, DependencyState.LOCKED):
        return None
    url = reverse("version", args=[version.pk])
    if row.state in IN_WORK:
        return MissingPart(
            gettext("Its dependencies are being resolved or built."), url=url, action=gettext("See how far")
        )
    return MissingPart(
        gettext("Its dependencies could not be resolved or built."),
        gettext("Correct them in the next version, or try again."),
        url,
        gettext("See why"),
    )


def _find_review(version: ToolVersion, *, by: Principal) -> MissingPart | None:
    if version.review_state != VersionState.SUBMITTED:
        return None
    n = approvals_missing(version)
    what = ngettext("%(n)d approval is missing.", "%(n)d approvals are missing.", n) % {"n": n}
    url = reverse("review", args=[version.pk]) if by.may("tools.review") else ""
    return MissingPart(
        what, gettext("A reviewer who did not submit it decides."), url, gettext("See the review") if url else ""
    )


def _find_enabling(version: ToolVersion, installation: Installation | None, *, by: Principal) -> MissingPart | None:
    if installation is not None and installation.version_id == version.pk:
        if installation.state == InstallationState.PAUSED:
            return MissingPart(
                gettext("Its installation here is paused."), gettext("Somebody who operates tools resumes it.")
            )
        return None
    if version.tool.state in (ToolState.PAUSED, ToolState.DEPRECATED):
        return MissingPart(
            gettext("The tool is %(state)s.") % {"state": version.tool.get_state_display().lower()},
            gettext("Somebody who operates tools decides."),
        )
    url = reverse("version", args=[version.pk]) if by.may("tools.operate") else ""
    what = (
        gettext("It is not enabled: calls get %(version)s.") % {"version": installation.version.version}
        if installation is not None and installation.version is not None
        else gettext("It is not enabled yet.")
    )
    return MissingPart(
        what, gettext("Somebody who operates tools enables it."), url, gettext("Enable it") if url else ""
    )


def _find_setup(
    version: ToolVersion, installation: Installation | None, present: set[str], *, by: Principal
) -> MissingPart | None:
    """Of the settings and secrets that it asks for; nothing before it is installed."""
    if installation is None or installation.version_id != version.pk:
        return None
    config_digest, secrets = installation.config_digest, installation.secrets
    if not missing_setup(version.view, config_digest=config_digest, secrets=secrets, present=present):
        return None
    url = reverse("installation", args=[version.tool.name]) if by.may("tools.install") else ""
    return MissingPart(
        gettext("Settings or secrets of its installation are missing."),
        gettext("Somebody who installs tools fills them in."),
        url,
        gettext("Fill them in") if url else "",
    )


def _find_grant(version: ToolVersion, expressions: set[str], *, by: Principal) -> MissingPart | None:
    subject = compiled_version(version.pk).subject
    if any(parse_cached(each).matches(subject) for each in expressions):
        return None
    name = "grant_new" if by.may("grants.give") else "grant_request_new"
    action = gettext("Give a grant") if by.may("grants.give") else gettext("Ask for a grant")
    return MissingPart(
        gettext("No grant covers it, so no agent may call it."),
        gettext("Somebody who gives grants gives one."),
        f"{reverse(name)}?tools={version.tool.name}",
        action,
    )
