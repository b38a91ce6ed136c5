"""Shared rows: what the tests of a module begin with, made once; each takes back what it changes, and the module the rest."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from tests.support.calls import run_calls_here

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def rows_of_a_module(blocker: Any) -> Iterator[None]:
    """The transaction around the transactions of tests; none of them may be without one."""
    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def calls_run_here() -> Iterator[None]:
    """As in tests with the fixture ``bell``, while something is made for a module."""
    with override_settings(), pytest.MonkeyPatch.context() as patch:
        run_calls_here(patch, settings)
        yield
