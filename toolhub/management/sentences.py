"""Sentences that a command prints about a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.components.diffs import INVISIBLE

if TYPE_CHECKING:
    from kernel.problems import Problem


def flatten_text(text: str) -> str:
    """On one line, without what a terminal would act upon."""
    return INVISIBLE.sub("?", " ".join(text.split()))


def describe_problem(problem: Problem) -> list[str]:
    findings = problem.details.get("findings", [])
    each_one = [f"{each['pointer'] or '/'}: {each['message']}" for each in findings] if len(findings) > 1 else []
    return [
        flatten_text(problem.detail),
        *("  " + flatten_text(line) for line in each_one),
        *filter(None, [problem.remedy]),
    ]
