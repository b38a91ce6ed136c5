"""Process names: what a process of the hub calls its connections to PostgreSQL, so that others know who is at work on a database."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

from kernel.variables import KEEPER, UPKEEP, WORKER

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_OF_HOST = 38  # characters: PostgreSQL keeps 63 of a name
OTHER = "other"
_COMMANDS = {"upkeep": UPKEEP, "keep": KEEPER}  # of `manage.py`
_NAME = re.compile(r"toolhub (\S+) (\d+)(?: (\w+))?")


@dataclass(frozen=True, slots=True)
class ProcessName:
    """``role``: what it does beside requests and commands, which are ``other``. Empty of one that a version of before started, which
    said none.
    """

    host: str
    pid: int
    role: str

    def __str__(self) -> str:
        return f"toolhub {self.host} {self.pid} {self.role}".rstrip()


def find_role(words: Sequence[str]) -> str:
    """``words``: how the process was started."""
    program, *more = words
    path = Path(program)
    if "celery" in (path.name, path.parent.name):  # the second: `python -m celery`
        return WORKER if "worker" in more else OTHER
    return _COMMANDS.get(more[0], OTHER) if more else OTHER


def name_process(words: Sequence[str]) -> ProcessName:
    """That of this process."""
    return ProcessName(gethostname()[:MOST_OF_HOST], os.getpid(), find_role(words))


def parse_process_name(text: str) -> ProcessName | None:
    """None: no process of a hub."""
    found = _NAME.fullmatch(text)
    return ProcessName(found[1], int(found[2]), found[3] or "") if found else None
