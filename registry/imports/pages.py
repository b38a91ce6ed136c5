"""Pages of imports: how people bring tools that others have made, from the source to the drafts that they submit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.object_permissions.rules import allowed_on
from kernel.components.diffs import diff_documents
from kernel.components.forms import add_problem
from kernel.components.sentences import describe_problem, translate_sentence
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.ids import decode
from kernel.problems import Conflict, NotFound, Problem
from registry.imports import drafts as import_drafts
from registry.imports import next_versions, services, submissions
from registry.imports.forms import ManifestForm, PackageForm, RemoteForm, SourceDocumentForm, ToolDraftForm
from registry.imports.known_sources import BY_KEY, KNOWN_SOURCES, OF_START, KnownSource
from registry.imports.models import ArrayLength, Import, ImportState
from registry.imports.offers import select_offers
from registry.problems import ManifestInvalid
from registry.versions.presentation import shown_changes
from unitools.brought_tools import MAX_CHOSEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from django.forms import Form
    from django.http import HttpResponse

    from registry.imports.drafts import ImportDraft

FORMS: dict[str, type[SourceDocumentForm | RemoteForm | PackageForm]] = {
    "openapi": SourceDocumentForm,
    "remote": RemoteForm,
    "package": PackageForm,
}
ADDRESSES = {"openapi": "import_document", "remote": "import_remote", "package": "import_package"}


@require_GET
@needs("tools.submit")
def imports(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Import)."""
    rows = Import.objects.for_lists().filter(tenant_id=request.principal.tenant_id)
    context = {
        "section": "imports",
        "page": fetch_page(rows, prefix="imp", after=request.GET.get("after", "")),
    }
    return render_page(request, "imports/import_list.html", context, partial="rows")


def _find(request: ConsoleRequest, import_id: UUID) -> Import:
    counted: dict[str, Any] = {"draft_count": ArrayLength("drafts")}
    rows = Import.objects.defer("content", "made").annotate(**counted)
    return rows.get(pk=import_id, tenant_id=request.principal.tenant_id)


def _find_earlier(request: ConsoleRequest, kind: str) -> Import | None:
    """The import that the form is filled in from."""
    text = request.GET.get("import", "")
    if not text:
        return None
    try:
        found = Import.objects.defer("content").filter(pk=decode("imp", text), tenant_id=request.principal.tenant_id)
    except ValueError:
        return None
    return found.filter(kind=kind).first()


def _find_known(request: ConsoleRequest, kind: str) -> KnownSource | None:
    """The known source that the form is filled in from."""
    known = BY_KEY.get(request.GET.get("known", ""))
    return known if known is not None and known.kind == kind else None


def _choices_of(known: KnownSource | None) -> dict[str, Any]:
    return {"wanted": known.wanted, "effects": known.effects} if known else {}


def _source_page(
    request: ConsoleRequest,
    kind: str,
    template: str,
    read: Callable[..., Import],
    *,
    more: Callable[[Import | None, KnownSource | None], dict[str, Any]] = lambda _earlier, _known: {},
) -> HttpResponse:
    """A form that names a source. Nothing that was typed is lost when the source cannot be brought. ``more``: what the form is told
    of the import before, or of the known source."""
    earlier, known = _find_earlier(request, kind), _find_known(request, kind)
    initial = FORMS[kind].initial_of(earlier) if earlier else FORMS[kind].initial_of_known(known) if known else None
    form = FORMS[kind](request.POST or None, request.FILES or None, initial=initial, **more(earlier, known))
    findings: list[dict[str, str]] = []
    if request.method == "POST" and form.is_valid():
        try:
            row = read(form.cleaned_data, **_choices_of(known))
        except Problem as problem:
            add_problem(form, problem)
            findings = [each for each in problem.details.get("findings", []) if "fix" in each]
        else:
            return redirect("import", row.pk)
    context = {"section": "imports", "form": form, "findings": findings, "earlier": earlier, "known": known}
    return render_page(request, template, context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def import_document(request: ConsoleRequest) -> HttpResponse:
    """Context: form (SourceDocumentForm), findings (list of {pointer, message, fix}), earlier (the Import that it is filled in from,
    or None), known (KnownSource or None).
    """
    return _source_page(
        request,
        "openapi",
        "imports/import_document.html",
        lambda data, **chosen: services.import_document(
            data=data.pop("file").read(),
            by=request.principal,
            **chosen,
            **{each: data[each] for each in ("group", "servers", "secrets", "idempotency_header")},
        ),
    )


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def import_remote(request: ConsoleRequest) -> HttpResponse:
    """Context: as of import_document, with a RemoteForm."""

    def read(data: dict[str, Any], **chosen: Any) -> Import:
        secret = data["secret"].strip()
        return services.import_remote(
            url=data["url"].strip(),
            group=data["group"],
            secrets=[secret] if secret else [],
            values={secret.partition("=")[0]: data["token"]},
            by=request.principal,
            **chosen,
        )

    return _source_page(request, "remote", "imports/import_remote.html", read)


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def import_package(request: ConsoleRequest) -> HttpResponse:
    """Context: as of import_document, with a PackageForm."""
    return _source_page(
        request,
        "package",
        "imports/import_package.html",
        lambda data, **chosen: services.import_package(by=request.principal, **data, **chosen),
        more=lambda earlier, known: {
            "lock": earlier.source.get("lock", []) if earlier else known.read_lock() if known else []
        },
    )


@require_GET
@needs("tools.submit")
def known_sources(request: ConsoleRequest) -> HttpResponse:
    """Context: rows (list of {known, brought: Import or None})."""
    mine = Import.objects.for_lists().filter(tenant_id=request.principal.tenant_id)
    brought = {each.group: each for each in mine}
    context = {
        "section": "imports",
        "rows": [{"known": each, "brought": brought.get(each.group)} for each in KNOWN_SOURCES],
        "addresses": ADDRESSES,
    }
    return render_page(request, "imports/known_sources.html", context)


@require_POST
@needs("tools.submit")
def known_source_take(request: ConsoleRequest) -> HttpResponse:
    """POST known (its key): a server of a package that needs nothing more to be said."""
    known = BY_KEY.get(request.POST.get("known", ""))
    if known is None or known.takes_a_form:
        raise NotFound(gettext("There is no such source."))
    row = services.import_package(
        package=known.package,
        version=known.version,
        group=known.group,
        lock=known.read_lock(),
        by=request.principal,
        **{each: getattr(known, each) for each in OF_START},
        **_choices_of(known),
    )
    return redirect("import", row.pk)


@require_POST
@needs("tools.submit")
def tool_next_version(request: ConsoleRequest, name: str) -> HttpResponse:
    """What the server of a paused tool lists now becomes the version that follows, and waits for its review."""
    made = next_versions.make_next_version(name=name, by=request.principal)
    messages.success(request, gettext("Submitted. Another person must review it."))
    if "tools.review" in allowed_on(request.principal, made.tool):
        return redirect("review", made.pk)
    return redirect("version", made.pk)


def _import_page(
    request: ConsoleRequest, row: Import, *, problem: Problem | None = None, chosen: Collection[str] = ()
) -> HttpResponse:
    drafted = {each["name"] for each in row.drafts}
    offers = select_offers(row.offered, request.GET)
    context = {
        "section": "imports",
        "import": row,
        "states": ImportState,
        "waits": row.state == ImportState.LISTING,
        "drafts": [_shown_draft(each) for each in row.drafts],
        "seen": import_drafts.compute_draft_digest(row.drafts),
        "room": max(0, MAX_CHOSEN - len(row.drafts)),
        "offers": offers,
        "rows": [each | {"drafted": each["name"] in drafted, "ticked": each["name"] in chosen} for each in offers.rows],
        "gone": services.find_gone(row) if row.state == ImportState.READ else [],
        "again": f"{reverse(ADDRESSES[row.kind])}?import={row.wire_id}",
        "problem": problem,
        "said": describe_problem(problem) if problem else "",
        "refused_tool": problem.details.get("tool", "") if problem else "",
        "findings": problem.details.get("findings", []) if problem else [],
    }
    return render_page(request, "imports/import_detail.html", context, status=422 if problem else 200)


def _shown_draft(draft: ImportDraft) -> dict[str, Any]:
    document = draft["document"]
    return {
        "draft": draft,
        "document": document,
        "risk": max((str(each["risk"]) for each in draft["changes"]), key=_RISKS.index, default=""),
        "other_effect": submissions.has_other_effect(draft),
        "is_same": not import_drafts.is_otherwise(draft),
    }


_RISKS = ["", "none", "low", "medium", "high"]


@require_GET
@needs("tools.submit")
def import_detail(request: ConsoleRequest, import_id: UUID) -> HttpResponse:
    """Context: import (Import), waits (a worker is at it), drafts (list of {draft, document, risk, other_effect, is_same}), seen
    (their digest), room (how many more may be chosen), offers (Offers), rows (of this page, with drafted and ticked), gone (names
    that were brought and are not there any more), again (address of the form that reads the source anew), problem (or None), said
    (what it says), refused_tool, findings (of the draft that was refused).
    """
    return _import_page(request, _find(request, import_id))


@require_POST
@needs("tools.submit")
def import_choose(request: ConsoleRequest, import_id: UUID) -> HttpResponse:
    """POST names. The query is that of the list, to which it leads back."""
    names = request.POST.getlist("names")
    try:
        services.choose_tools(import_id=import_id, names=names, by=request.principal)
    except Problem as problem:
        if problem.status >= 500:
            raise
        return _import_page(request, _find(request, import_id), problem=problem, chosen=set(names))
    query = request.GET.urlencode()
    return redirect(reverse("import", args=[import_id]) + (f"?{query}" if query else "") + "#drafts")


@require_POST
@needs("tools.submit")
def import_submit(request: ConsoleRequest, import_id: UUID) -> HttpResponse:
    """The drafts become versions that wait for their review. POST seen: the digest of those that were shown."""
    row = _find(request, import_id)
    try:
        made = submissions.submit_import(import_id=import_id, by=request.principal, seen=request.POST.get("seen", ""))
    except Problem as problem:
        if problem.status >= 500:
            raise
        return _import_page(request, _find(request, import_id), problem=problem)
    n = len(made)
    messages.success(
        request,
        ngettext(
            "%(n)d version was submitted. Another person must review it.",
            "%(n)d versions were submitted. Another person must review them.",
            n,
        )
        % {"n": n},
    )
    if n == 1 and "tools.review" in allowed_on(request.principal, made[0].tool):
        return redirect("review", made[0].pk)
    return redirect("tool_versions", made[0].tool.name) if n == 1 else redirect(f"{reverse('tools')}?q={row.group}.")


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def import_remove(request: ConsoleRequest, import_id: UUID) -> HttpResponse:
    """Context: import."""
    row = _find(request, import_id)
    if request.method == "POST":
        services.remove_import(import_id=import_id, by=request.principal)
        messages.success(request, gettext("Removed. Versions that were made of it stay."))
        return redirect("imports")
    return render_page(request, "imports/import_remove.html", {"section": "imports", "import": row})


def _draft_page(
    request: ConsoleRequest, row: Import, draft: ImportDraft, form: ToolDraftForm, whole: ManifestForm, *, is_told: bool
) -> HttpResponse:
    """``is_told``: that the draft was changed meanwhile. Who is not, and made a mistake, keeps the digest of what they read."""
    base = import_drafts.find_base(row, draft)
    now = import_drafts.compute_draft_digest([draft])
    read = now if is_told else request.POST.get("seen", "")
    context = {
        "section": "imports",
        "import": row,
        "draft": draft,
        "form": form,
        "whole": whole,
        "base": base,
        "changes": shown_changes(draft["changes"]),
        "diff": diff_documents(base.manifest, draft["document"]) if base else None,
        "seen": read if form.is_bound else now,
        "seen_whole": read if whole.is_bound else now,
    }
    status = 422 if form.is_bound or whole.is_bound else 200
    return render_page(request, "imports/draft.html", context, status=status)


def _add_findings(form: Form, problem: Problem) -> None:
    """At the fields that they are of; those of the rest of the manifest with their place in it."""
    if not isinstance(problem, ManifestInvalid):
        add_problem(form, problem)
        return
    for each in problem.details["findings"]:
        name, said = each["pointer"].strip("/"), translate_sentence(each["message"])
        is_of_field = name in form.fields
        form.add_error(name if is_of_field else None, said if is_of_field else f"{each['pointer'] or '/'}: {said}")


@require_http_methods(["GET", "POST"])
@needs("tools.submit")
def import_draft(request: ConsoleRequest, import_id: UUID, tool: str) -> HttpResponse:
    """Context: import, draft (ImportDraft), form (ToolDraftForm), whole (ManifestForm), base (ToolVersion or None), changes, diff,
    seen, seen_whole (digests of the draft that each form was filled from). POST with ``whole`` sends the manifest as a text, else
    the fields.
    """
    row = _find(request, import_id)
    draft = services.find_draft(row, tool)
    is_whole = request.method == "POST" and "whole" in request.POST
    is_fields = request.method == "POST" and not is_whole
    form = ToolDraftForm(request.POST if is_fields else None, draft=draft)
    whole = ManifestForm(request.POST if is_whole else None, draft=draft)
    sent: Form = whole if is_whole else form
    is_told = False
    if request.method == "POST" and sent.is_valid():
        document = whole.cleaned_data["text"] if is_whole else form.apply_to(draft["document"])
        try:
            services.edit_draft(
                import_id=import_id,
                tool=tool,
                document=document,
                reason=sent.cleaned_data["reason"],
                by=request.principal,
                seen=request.POST.get("seen", ""),
            )
        except Problem as problem:
            if problem.status >= 500:
                raise
            _add_findings(sent, problem)
            is_told = isinstance(problem, Conflict)
        else:
            messages.success(request, gettext("The draft was saved."))
            return redirect("import", row.pk)
    return _draft_page(request, row, draft, form, whole, is_told=is_told)


@require_POST
@needs("tools.submit")
def import_draft_remove(request: ConsoleRequest, import_id: UUID, tool: str) -> HttpResponse:
    services.remove_draft(import_id=import_id, tool=tool, by=request.principal)
    return redirect(f"{reverse('import', args=[import_id])}#drafts")
