"""Clients: the programs that ask people for leave to act as an agent, and what is known of them.

A row of django-oauth-toolkit each. The host of its id vouches for one whose document was fetched from there (CIMD), and a tenant for
one that it has entered by hand, which no other knows. For the rest nobody does, and their names are their own words.
"""

from __future__ import annotations

import hmac
import secrets
import unicodedata
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oauth2_provider.generators import generate_client_id
from oauth2_provider.models import get_application_model

from access.models import Connection, EnteredClient
from access.oauth.validator import hash_client_secret
from kernel.canonical import compute_digest
from kernel.components.diffs import INVISIBLE
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.models import QuerySet

Application: Any = get_application_model()
REGISTERED, ENTERED = "dcr", "manual"  # sources of a row, beside `cimd`, which django-oauth-toolkit writes
MAX_NAME = 60
# Controls, formats and separators; opening and closing quotes, which would end the quotation in which a name is shown.
UNREADABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Pi", "Pf"})
ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK"})
QUOTES = frozenset('"`´„‚「」『』〝〞〟＂\u2800')  # and the blank of Braille
MAX_WITHOUT_CONNECTION = 1000
UNUSED_FOR = timedelta(hours=24)
READ_FOR = timedelta(hours=1)  # as long as a person takes who is asked


@dataclass(frozen=True, slots=True)
class Client:
    """``host``: that vouches for it; empty: nobody does. ``name``: what it calls itself, or is called by the tenant that has entered
    it (``tenant_id``), which alone knows it.
    """

    id: str
    kind: Connection.ClientKind
    name: str
    host: str
    digest: str
    tenant_id: UUID | None = None
    entered_by: str = ""

    @property
    def known_as(self) -> str:
        """What somebody vouches for; empty: nothing."""
        return self.name if self.tenant_id else self.host


def clean_name(text: object) -> str:
    """What a program calls itself, without what nobody sees, what turns the line around or ends a quotation, and not for long."""
    if not isinstance(text, str):
        return ""
    kept = "".join(" " if each.isspace() else each for each in INVISIBLE.sub("", text) if _is_readable(each))
    return " ".join(kept.split())[:MAX_NAME].strip()


def mixes_alphabets(name: str) -> bool:
    """Whether a word of it has letters of alphabets that look alike, so that it may be read as another word."""
    words = [{unicodedata.name(each, "").partition(" ")[0] for each in word if each.isalpha()} for word in name.split()]
    return any(len(alphabets & ALIKE) > 1 for alphabets in words)


def _is_readable(letter: str) -> bool:
    return letter.isspace() or (unicodedata.category(letter) not in UNREADABLE and letter not in QUOTES)


def create_client(*, name: str, redirect_uris: Iterable[str], confidential: bool, source: str) -> tuple[Any, str]:
    """A row, and the secret of a confidential one, which is kept as a hash."""
    secret = secrets.token_urlsafe(32) if confidential else ""
    made = Application.objects.create(
        client_id=generate_client_id(),
        name=name,
        redirect_uris=" ".join(redirect_uris),
        client_type="confidential" if confidential else "public",
        authorization_grant_type="authorization-code",
        client_secret=hash_client_secret(secret) if secret else "",
        hash_client_secret=False,  # it is a hash already
        registration_source=source,
    )
    return made, secret


def find_entered_client(client_id: str) -> EnteredClient | None:
    """Whose it is, of a program that was entered by hand."""
    with hub_wide():  # which tenant knows a program, is what is asked
        return EnteredClient.objects.filter(application__client_id=client_id).first()


def authenticate_entered_client(client_id: str, secret: str) -> EnteredClient | None:
    """The program of a tenant that keeps a secret and has shown it."""
    with hub_wide():  # which tenant knows a program, is what is asked
        rows = EnteredClient.objects.select_related("application")
        found = rows.filter(application__client_id=client_id, application__client_type="confidential").first()
    kept = found.application.client_secret if found else ""
    return found if kept and hmac.compare_digest(hash_client_secret(secret), kept) else None


def describe_client(application: Any, entered: EnteredClient | None = None) -> Client:
    said = {
        "client_id": application.client_id,
        "name": application.name,
        "redirect_uris": sorted(application.redirect_uris.split()),
        "kind": application.registration_source,
    }
    by_document = application.registration_source == "cimd"
    kind = Connection.ClientKind.DOCUMENT if by_document else Connection.ClientKind.REGISTERED
    host = urlsplit(application.client_id).hostname or "" if by_document else ""
    found = Client(application.client_id, kind, clean_name(application.name), host, compute_digest(said))
    if entered is None:
        return found
    kind = Connection.ClientKind.ENTERED
    return replace(found, kind=kind, tenant_id=entered.tenant_id, entered_by=entered.entered_by)


def _without_connection(source: str) -> QuerySet[Any]:
    live = Connection.objects.live(database_time())
    found: QuerySet[Any] = Application.objects.filter(registration_source=source)
    return found.exclude(client_id__in=live.values("client_id"))


def remove_unused_clients() -> None:
    """Those that nobody lets in a day after they have registered (many do so anew for each sign-in), or their document was read.
    Those that were entered by hand stay.
    """
    before = database_time() - UNUSED_FOR
    _without_connection(REGISTERED).filter(created__lt=before).delete()
    _without_connection("cimd").filter(updated__lt=before).delete()


def make_room_for_client() -> bool:
    """Whether one more may register. Where there are too many that nobody has let in, the oldest goes, unless it has come just now:
    a person may be reading what it asks for.
    """
    unused = _without_connection(REGISTERED)
    if unused.count() < MAX_WITHOUT_CONNECTION:
        return True
    oldest = unused.filter(created__lt=database_time() - READ_FOR).order_by("created").first()
    if oldest is None:
        return False
    oldest.delete()
    return True
