"""Recorded refusals: of chains and agent runs that were not accepted, where a fact says so already."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel.problems import Problem


class RecordedRefusal(Exception):
    """Carries the problem of what was not accepted to the edge. That it was refused is written down."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)
