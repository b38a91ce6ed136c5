"""Sentences that a command prints about a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolhub.kernel.diffing import INVISIBLE

if TYPE_CHECKING:
    from toolhub.kernel.problems import Problem


def plain(text: str) -> str:
    """On one line, without what a terminal would act upon."""
    return INVISIBLE.sub("?", " ".join(text.split()))


def said(problem: Problem) -> list[str]:
    findings = problem.details.get("findings", [])
    each_one = [f"{each['pointer'] or '/'}: {each['message']}" for each in findings] if len(findings) > 1 else []
    return [plain(problem.detail), *("  " + plain(line) for line in each_one), *filter(None, [problem.remedy])]
