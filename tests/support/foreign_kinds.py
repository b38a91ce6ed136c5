"""Foreign kinds: a distribution of somebody else that adds kinds of providers by entry points, installed for a while."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from llm.provider_factory import list_foreign_kinds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULES = {
    "others_models": "from tests.support.scripted_models import ScriptedProvider as OthersProvider\n",
    "broken_models": "raise RuntimeError('canary')\n",
}
LISTED = "[llm.providers]\nothers = others_models:OthersProvider\nbroken = broken_models:Provider\n"


@contextmanager
def installed_foreign_kinds(folder: Path) -> Iterator[None]:
    """``others``: scripted models; ``broken``: its module cannot be imported. ``folder``: an empty one."""
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    (information := folder / "others-1.0.dist-info").mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(LISTED)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(folder)
            importlib.invalidate_caches()
            list_foreign_kinds.cache_clear()
            yield
    finally:
        list_foreign_kinds.cache_clear()
        for name in MODULES:
            sys.modules.pop(name, None)
