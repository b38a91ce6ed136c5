"""Forms: how a problem finds its field, and the reason that is kept as evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.utils.translation import gettext_lazy

from kernel.components.sentences import describe_problem, translate_sentence
from kernel.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest

R = TypeVar("R")
F = TypeVar("F", bound=forms.BaseForm)


def fill_form(form: type[F], request: HttpRequest, *, initial: dict[str, Any] | None = None, **more: Any) -> F:
    """The form as the request fills it in. With ``check`` among what was sent nothing is to be done yet: what was typed stands in
    it, and the page says what it would do.
    """
    if "check" in request.POST:
        return form(initial={**(initial or {}), **request.POST.dict()}, **more)
    return form(request.POST or None, initial=initial, **more)


def submit_form(form: forms.BaseForm, service: Callable[[], R], *, refusals: type[Problem] = Problem) -> R | None:
    """What the service returns for a form that is filled in well. None: it is not (nor is one that nobody has sent), or the service
    refused with a problem of ``refusals``; the form says which.
    """
    if not form.is_valid():
        return None
    try:
        return service()
    except refusals as problem:
        add_problem(form, problem)
    return None


def add_problem(
    form: forms.BaseForm, problem: Problem, *, about: str = "", fields: Mapping[str, str] | None = None
) -> None:
    """Show a problem's findings at the fields that their pointers name; the rest above the form. ``about``: stands before each.
    ``fields``: what the form calls a field that the service calls otherwise.
    """
    about = f"{about}: " if about else ""
    findings = problem.details.get("findings", [])
    for finding in findings:
        name = finding["pointer"].strip("/").split("/")[0]
        name = (fields or {}).get(name, name)
        form.add_error(name if name in form.fields else None, f"{about}{translate_sentence(finding['message'])}")
    if not findings:
        form.add_error(None, f"{about}{describe_problem(problem)}")


class ReasonForm(forms.Form):
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
    )
