"""Parameters: which of many cases of one kind does `make test` try, and which are left to `make test-all`?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def try_one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """All of them; those that are not the first, or ``every`` further on, are marked ``long``. A case of several values is a tuple."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.long] if index % every else [])
        for index, case in enumerate(cases)
    ]
