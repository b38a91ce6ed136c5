"""Models of server accounts: by whose account a server elsewhere is asked.

A :class:`ServerAccount` is one person's own account at an :class:`AccountServer`. Its tokens are sealed under the key of that person,
so that they go with it when the person is erased. An :class:`AccountAuthorization` is what they have begun there,
:class:`ReturnedTokens` what nobody keeps any more and is given back.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast

from access.models.people import Tenant
from evidence.models import SubjectKey
from kernel.ids import encode, encode_user, new_id

if TYPE_CHECKING:
    from datetime import datetime

    from kernel.principal import Principal


class AccountServer(models.Model):
    """A server elsewhere that is asked by accounts of persons: who gives tokens for it, and who the hub is there."""

    class HubClientKind(models.TextChoices):
        # The hub's document at the address that is its id (CIMD).
        DOCUMENT = "document"
        # The hub has registered itself (RFC 7591).
        REGISTERED = "registered"
        # Somebody of the tenant has entered what the server's owner has given them.
        ENTERED = "entered"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="account_servers")
    resource = models.CharField(max_length=400)  # the address under which manifests name it
    issuer = models.CharField(max_length=400, blank=True)
    terms = models.JSONField(default=dict)  # what its metadata said: access.server_accounts.discovery
    client_id = models.CharField(max_length=500, blank=True)
    client_kind = models.CharField(max_length=12, choices=HubClientKind, blank=True)
    # The client's secret, wrapped by a master key; empty: it has none.
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField(default=b"")
    nonce = models.BinaryField(default=b"")
    ciphertext = models.BinaryField(default=b"")
    entered_by = models.CharField(max_length=64, blank=True)
    client_ends_at = models.DateTimeField(
        null=True, blank=True
    )  # of a registration that lasts so long; None: it does not end
    client_refused_at = models.DateTimeField(
        null=True, blank=True
    )  # the authorization server does not take it, first seen then
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "resource"], name="account_server_once_in_a_tenant"),
            models.CheckConstraint(
                condition=Q(client_id="", client_kind="") | ~Q(client_id="") & ~Q(client_kind=""),
                name="account_server_client_is_of_a_kind",
            ),
        ]

    def __str__(self) -> str:
        return self.resource

    @property
    def wire_id(self) -> str:
        return encode("asv", self.id)

    @property
    def host(self) -> str:
        return urlsplit(self.resource).hostname or ""

    @property
    def callback_key(self) -> str:
        """The part of the hub's redirect URI for this server that no other server's has; known before there is a row of it."""
        return hashlib.sha256(self.tenant_id.bytes + self.resource.encode()).hexdigest()[:32]


class ServerAccountState(models.TextChoices):
    REQUESTED = "requested"  # a call waits for it, or somebody was asked
    CONNECTED = "connected"
    ENDED = "ended"


SERVER_ACCOUNT_TRANSITIONS: dict[str, frozenset[str]] = {
    ServerAccountState.REQUESTED: frozenset({ServerAccountState.CONNECTED, ServerAccountState.ENDED}),
    ServerAccountState.CONNECTED: frozenset({ServerAccountState.ENDED}),
    ServerAccountState.ENDED: frozenset(),
}


class ServerAccountQuerySet(models.QuerySet["ServerAccount"]):
    def readable_by(self, by: Principal) -> ServerAccountQuerySet:
        """Those whose calls an agent's credential may read, whoever made them: a program those of the person who has let it act as the
        agent, a key those that their persons let the agent use."""
        mine = self.filter(tenant_id=by.tenant_id)
        if by.connection is not None:
            return mine.filter(member_id=int(by.connection.member.removeprefix("usr_")))
        agents = mine.annotate(agents_text=Cast("agents", models.TextField()))  # SQLite looks into no list
        return agents.filter(state=ServerAccountState.CONNECTED, agents_text__contains=f'"{encode("agt", by.agent())}"')


class ServerAccount(models.Model):
    """One person's account at a server elsewhere, for calls that are for that person and nobody else."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="server_accounts")
    member = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="server_accounts")
    server = models.ForeignKey(AccountServer, models.PROTECT, related_name="accounts")
    state = models.CharField(max_length=12, choices=ServerAccountState, default=ServerAccountState.REQUESTED)
    # Agents (agt_…) whose own word that a call is for the person is enough; and those that have asked for it.
    agents = models.JSONField(default=list)
    asked_by = models.JSONField(default=list)
    # Who has given its tokens, to which client, and where: newer ones are asked for there and nowhere else, whatever the server names
    # by now. Empty until it is connected.
    issuer = models.CharField(max_length=400, blank=True)
    client_id = models.CharField(max_length=500, blank=True)
    terms = models.JSONField(default=dict)
    scopes = models.JSONField(default=list)  # what its tokens are good for
    number = models.PositiveIntegerField(default=0)  # of its tokens; evidence counts them
    # The tokens, under the person's key; empty: there are none.
    subject_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, blank=True, related_name="+")
    token_key = models.BinaryField(default=b"")
    nonce = models.BinaryField(default=b"")
    ciphertext = models.BinaryField(default=b"")
    refreshable = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)  # of the access token; None: it does not say
    refreshing_until = models.DateTimeField(null=True, blank=True)  # one process fetches newer tokens until then
    lists_held = models.JSONField(default=dict)  # by tool version, when the server's list was held against it
    requested_at = models.DateTimeField(auto_now_add=True)
    connected_at = models.DateTimeField(null=True, blank=True)
    refreshed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=64, blank=True)
    end_reason = models.CharField(max_length=16, blank=True)

    objects = ServerAccountQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "member", "server"], condition=Q(ended_at=None), name="server_account_open_once"
            ),
            models.CheckConstraint(
                condition=Q(state="ended", ended_at__isnull=False) & ~Q(ended_by="") & ~Q(end_reason="")
                | ~Q(state="ended") & Q(ended_at=None, ended_by="", end_reason=""),
                name="server_account_ended_by_somebody_because",
            ),
            # What has ended holds nothing, and what is connected does.
            models.CheckConstraint(
                condition=Q(state="connected", subject_key__isnull=False)
                | ~Q(state="connected") & Q(subject_key=None, refreshable=False),
                name="server_account_has_tokens_while_connected",
            ),
            models.CheckConstraint(
                condition=~Q(state="connected") | ~Q(issuer="") & ~Q(client_id=""),
                name="server_account_knows_who_gave_its_tokens",
            ),
        ]
        indexes = [models.Index(fields=["member", "-id"], name="server_account_of_member")]

    def __str__(self) -> str:
        return f"{self.server} of {self.member_id} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("sac", self.id)

    @property
    def person(self) -> str:
        return encode_user(self.member_id)

    @property
    def is_connected(self) -> bool:
        return self.state == ServerAccountState.CONNECTED

    def serves(self, agent: str, *, vouched: bool) -> bool:
        """Whether a call by this agent (``agt_…``) may use it. ``vouched``: the hub itself knows that the call is for the person."""
        return self.is_connected and (vouched or agent in self.agents)

    def is_due(self, at: datetime) -> bool:
        """Whether newer tokens are needed by then."""
        return self.expires_at is not None and self.expires_at <= at


class AccountAuthorization(models.Model):
    """What a person has begun at an authorization server in one browser, until its answer comes: a row each, so that what is begun
    twice at once does not overwrite one another."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    account = models.ForeignKey(ServerAccount, models.CASCADE, related_name="authorizations")
    digest = models.CharField(max_length=64, unique=True)  # of the state and of the browser's session
    callback = models.CharField(max_length=64, blank=True)  # the key of the address that the answer must come to
    issuer = models.CharField(max_length=400)
    client_id = models.CharField(max_length=500)
    terms = models.JSONField(default=dict)
    scopes = models.JSONField(default=list)
    agents = models.JSONField(default=list)
    begun_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["account", "-begun_at"], name="authorization_of_account")]

    def __str__(self) -> str:
        return f"{self.issuer} ({self.begun_at:%Y-%m-%d %H:%M})"


class ReturnState(models.TextChoices):
    WAITING = "waiting"
    RETURNED = "returned"
    LAPSED = "lapsed"  # not taken, or not given back since the account is connected anew: they run out by themselves


class ReturnedTokens(models.Model):
    """Tokens that nobody keeps, on their way back to who gave them. Afterwards the row says what became of them."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    account = models.ForeignKey(ServerAccount, models.CASCADE, related_name="returned_tokens")
    state = models.CharField(max_length=8, choices=ReturnState, default=ReturnState.WAITING)
    client_id = models.CharField(max_length=500)
    terms = models.JSONField(default=dict)
    # The tokens, under the person's key; empty once they are gone.
    subject_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, blank=True, related_name="+")
    token_key = models.BinaryField(default=b"")
    nonce = models.BinaryField(default=b"")
    ciphertext = models.BinaryField(default=b"")
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="waiting", subject_key__isnull=False, next_attempt_at__isnull=False)
                | ~Q(state="waiting") & Q(subject_key=None, next_attempt_at=None),
                name="returned_tokens_are_kept_while_they_wait",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="returned_tokens_due", condition=Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"tokens of {self.account_id} ({self.state})"

    @property
    def endpoint(self) -> str:
        return str(self.terms.get("revocation_endpoint", ""))

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).hostname or ""
