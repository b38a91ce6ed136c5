"""Pages of object permissions: owners give permission on a single tool or agent, and withdraw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from access.forms import ExceptionForm
from access.members import services as members
from access.members.pages import get_member, person_page
from access.roles import ON_AGENT
from kernel.components.forms import add_problem
from kernel.http.console import ConsoleRequest, needs
from kernel.problems import Problem
from registry.object_permissions import thing_named

if TYPE_CHECKING:
    from django.http import HttpResponse


@require_POST
@needs("members.manage")
def person_exceptions(request: ConsoleRequest, user_id: int) -> HttpResponse:
    """POST permission, thing (the id of a tool or the name of an agent) and action (give or take)."""
    by, user, form = request.principal, get_member(request, user_id), ExceptionForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        change = members.give_permission if data["action"] == "give" else members.take_permission
        try:
            thing = thing_named("agent" if data["permission"] in ON_AGENT else "tool", data["thing"], by=by)
            change(user_id=user_id, permission=data["permission"], on=thing, by=by)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The permission was changed. It applies from the next request."))
            return redirect("person", user_id)
    return person_page(request, user, form=form, wrong="exception")
