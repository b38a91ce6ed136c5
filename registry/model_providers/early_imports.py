"""Early imports: what asks the connected providers is imported once a process serves, so that the first call does not wait for it.

The libraries of a provider take some seconds. They are imported in a thread of their own: whoever asks for anything else has the
interpreter in turns, and a call that comes meanwhile waits for what is left. A hub without providers imports none. What is there
then stays, and the garbage collector leaves it out: to look through it takes a quarter of a second, in which no answer moves.
"""

from __future__ import annotations

import gc
import logging
import threading

from django.db import DatabaseError

from kernel.database.connections import release_connection
from llm.providers.kinds import MODULES, load_kind
from registry.models import ModelProvider

log = logging.getLogger("toolhub.models")


def start_early_imports() -> threading.Thread:
    """Begin, and do not wait."""
    thread = threading.Thread(target=prepare_process, name="early-imports", daemon=True)
    thread.start()
    return thread


def prepare_process() -> None:
    import_connected_kinds()
    gc.collect()
    gc.freeze()


def import_connected_kinds() -> None:
    """Import the kinds of all tenants' providers. What fails is said by the first call that needs it, to whoever makes it."""
    try:
        kinds = set(ModelProvider.objects.values_list("kind", flat=True).distinct())
    except DatabaseError:  # it is not there yet
        return
    finally:
        release_connection()
    for kind in sorted(kinds & set(MODULES)):
        try:
            load_kind(kind)
        except Exception:
            log.warning("The kind of provider %s cannot be imported", kind, exc_info=True)
