"""Pages of tool files: how people see what the tools of a group keep, and empty it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from invocations.tool_files import services as tool_files
from invocations.tool_files.models import ToolFiles
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import NotFound
from registry.tools import selectors

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse


@require_GET
@needs("files.manage")
def tool_files_page(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: tool, group, state (of the manifest, or None), page (Page of ToolFiles)."""
    by = request.principal
    tool = selectors.get_tool(name, tenant_id=by.tenant_id)
    version = tool.current or tool.versions.order_by("-pk").first()
    group = name.rpartition(".")[0]
    if not group:
        raise NotFound(f"{name[:200]} is no tool that keeps files.")
    rows = ToolFiles.objects.filter(tenant_id=by.tenant_id, group=group).defer("ciphertext")
    context = {
        "section": "tools",
        "tool": tool,
        "group": group,
        "state": version.view.state if version is not None else None,
        "page": fetch_page(rows, prefix="tlf", after=request.GET.get("after", "")),
    }
    return render_page(request, "tool_files/tool_files.html", context)


@require_POST
@needs("files.manage")
def tool_files_empty(request: ConsoleRequest, name: str, files_id: UUID) -> HttpResponse:
    """What is kept is gone for good: the next call finds nothing."""
    row = tool_files.empty_tool_files(files_id=files_id, by=request.principal)
    messages.success(request, gettext("What %(group)s kept was removed.") % {"group": row.group})
    return redirect("tool_files", name)
