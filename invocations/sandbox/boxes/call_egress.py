"""Call egress: where a call may go while it is in a box, and what the gate saw of it."""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invocations.sandbox.boxes.maker import NotMade
from invocations.sandbox.egress import EgressRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from invocations.sandbox.base import ConnectionRecord
    from invocations.sandbox.boxes.box import Box
    from invocations.sandbox.egress import ServiceWay
    from unitools.capabilities import Capabilities

log = logging.getLogger(__name__)


@dataclass(slots=True)
class GateRecords:
    """What the gate tells of a call, in all boxes. None while it has not: then nobody knows, and the box serves no more."""

    connections: Sequence[ConnectionRecord] | None = ()

    def add(self, more: Sequence[ConnectionRecord] | None) -> None:
        self.connections = None if self.connections is None or more is None else (*self.connections, *more)


@contextmanager
def open_egress(
    box: Box, capabilities: Capabilities, tenant: str, seen: GateRecords, *, way: ServiceWay | None = None
) -> Iterator[None]:
    """While the block runs the call may go where its profile lets it; with a ``way``, ask for one operation of a service."""
    if box.door is None:
        yield
        return
    earlier, seen.connections = seen.connections, None
    try:
        box.door.begin(EgressRules(capabilities), tenant=tenant, way=way)
    except OSError as error:
        raise NotMade(f"The way out of the box could not be opened. {error}", broken=False) from error
    try:
        yield
    finally:
        try:
            told = box.door.end()
            seen.connections = earlier
            seen.add(told)
        except (OSError, CancelledError):
            log.exception("What a tool reached for was not told")
