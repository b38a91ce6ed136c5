"""Clients: the programs that ask people for leave to act as an agent, and what is known of them.

A row of django-oauth-toolkit each. Only the host of a program's id is something that anybody vouches for, and only where its document
was fetched from there (CIMD); its name is its own word.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oauth2_provider.models import get_application_model

from access.models import Connection
from kernel.canonical import compute_digest
from kernel.components.diffs import INVISIBLE
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from django.db.models import QuerySet

Application: Any = get_application_model()
MAX_NAME = 60
# Controls, formats and separators; opening and closing quotes, which would end the quotation in which a name is shown.
UNREADABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Pi", "Pf"})
QUOTES = frozenset('"`´„‚「」『』〝〞〟＂\u2800')  # and the blank of Braille
MAX_WITHOUT_CONNECTION = 1000
UNUSED_FOR = timedelta(hours=24)
READ_FOR = timedelta(hours=1)  # as long as a person takes who is asked


@dataclass(frozen=True, slots=True)
class Client:
    """``host``: that vouches for it; empty: nobody does. ``name``: what it calls itself."""

    id: str
    kind: Connection.ClientKind
    name: str
    host: str
    digest: str


def clean_name(text: object) -> str:
    """What a program calls itself, without what nobody sees, what turns the line around or ends a quotation, and not for long."""
    if not isinstance(text, str):
        return ""
    kept = "".join(" " if each.isspace() else each for each in INVISIBLE.sub("", text) if _is_readable(each))
    return " ".join(kept.split())[:MAX_NAME].strip()


def _is_readable(letter: str) -> bool:
    return letter.isspace() or (unicodedata.category(letter) not in UNREADABLE and letter not in QUOTES)


def describe_client(application: Any) -> Client:
    said = {
        "client_id": application.client_id,
        "name": application.name,
        "redirect_uris": sorted(application.redirect_uris.split()),
        "kind": application.registration_source,
    }
    by_document = application.registration_source == "cimd"
    kind = Connection.ClientKind.DOCUMENT if by_document else Connection.ClientKind.REGISTERED
    host = urlsplit(application.client_id).hostname or "" if by_document else ""
    return Client(application.client_id, kind, clean_name(application.name), host, compute_digest(said))


def _without_connection(source: str) -> QuerySet[Any]:
    live = Connection.objects.live(database_time())
    found: QuerySet[Any] = Application.objects.filter(registration_source=source)
    return found.exclude(client_id__in=live.values("client_id"))


def remove_unused_clients() -> None:
    """Those that nobody lets in a day after they have registered (many do so anew for each sign-in), or their document was read."""
    before = database_time() - UNUSED_FOR
    _without_connection("dcr").filter(created__lt=before).delete()
    _without_connection("cimd").filter(updated__lt=before).delete()


def make_room_for_client() -> bool:
    """Whether one more may register. Where there are too many that nobody has let in, the oldest goes, unless it has come just now:
    a person may be reading what it asks for.
    """
    unused = _without_connection("dcr")
    if unused.count() < MAX_WITHOUT_CONNECTION:
        return True
    oldest = unused.filter(created__lt=database_time() - READ_FOR).order_by("created").first()
    if oldest is None:
        return False
    oldest.delete()
    return True
