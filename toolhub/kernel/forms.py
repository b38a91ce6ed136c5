"""How does a problem find its field on a form?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.forms import BaseForm

    from toolhub.kernel.problems import Problem


def add_problem(form: BaseForm, problem: Problem) -> None:
    """Show a problem's findings at the fields that their pointers name; the rest above the form."""
    findings = problem.details.get("findings", [])
    for finding in findings:
        name = finding["pointer"].strip("/").split("/")[0]
        form.add_error(name if name in form.fields else None, finding["message"])
    if not findings:
        form.add_error(None, f"{problem.detail} {problem.remedy}".strip())
