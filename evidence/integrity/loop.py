"""Verifier loop: when the verifier runs.

A loop of the keeper, in any number of processes. After each piece it rests for several times as long as the piece took: reading the
log again must not cost calls their CPU.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings

from evidence.integrity.rollback_detection import verify_and_keep
from evidence.integrity.verifier import advance_next, begin_passes, note_findings, offer_counters
from evidence.models import GLOBAL_LOG
from kernel.loops import Rest, repeat_work

if TYPE_CHECKING:
    import threading

log = logging.getLogger("toolhub.verifier")
EVERY_S = 2.0
BEGIN_EVERY_S = 10.0


class Verifier:
    """What one process remembers between pieces."""

    def __init__(self) -> None:
        self.begin_at = 0.0

    def piece(self) -> Rest | None:
        """Something that is due, if anything is."""
        if time.monotonic() >= self.begin_at:
            self.begin_at = time.monotonic() + BEGIN_EVERY_S
            begin_passes()
            try:
                found = verify_and_keep()
            except OSError as error:
                log.warning("The checkpoint that is kept outside cannot be read or written: %s", error)
            else:
                note_findings(GLOBAL_LOG, found)
        began = time.monotonic()
        done = advance_next()
        if done is None:
            return None
        share = settings.TOOLHUB_VERIFY_SHARE_PERCENT if not done.asked_by else 50
        return Rest((time.monotonic() - began) * (100 - share) / share)


def run_verifier(stop: threading.Event) -> None:
    """Verify until told to stop."""
    offer_counters()
    repeat_work(Verifier().piece, stop, every_s=EVERY_S, what="The log was not verified", log=log)
