"""Modules of tools that do what the import system is for: their source."""

from __future__ import annotations

# A thread that it begins imports from it. ``{module}``: its own name.
BEGINS_THREAD = """
from importlib._bootstrap import _blocking_on
from threading import Thread

SAID = []

def take():
    try:
        from {module} import LATE
        SAID.append(LATE)
    except ImportError as error:
        SAID.append(str(error))

thread = Thread(target=take)
thread.start()
while thread.is_alive() and not _blocking_on.get(thread.ident):
    pass  # until it waits for this module, or was refused
LATE = "whole"

def run():
    thread.join()
    return SAID
"""
# Of a package: its module ``main`` is of this hook.
SETS_HOOK = """
import sys
from importlib.util import spec_from_loader

class Hook:
    def find_spec(self, name, path=None, target=None):
        return spec_from_loader(name, self) if name == f"{__name__}.main" else None

    def create_module(self, spec):
        pass

    def exec_module(self, module):
        module.run = lambda: "of the hook"

sys.meta_path.insert(0, Hook())
"""
