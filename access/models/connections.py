"""Models of connections: which program acts as which agent, because which person has let it.

What a program shows (an access or a refresh token, of which only digests are kept) leads to a :class:`Connection` and means nothing
without a live one. Which programs there are is kept by django-oauth-toolkit; a connection names its program by text, so that it
stays what it was when the program's registration is gone. Where an :class:`AssertionRule` says so, the identity provider of the person
speaks for them, and no page is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from access.models.people import Agent, Tenant, TrustedIssuer
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from datetime import datetime


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def live(self, now: datetime) -> ConnectionQuerySet:
        return self.filter(ended_at=None, until__gt=now)


class Connection(models.Model):
    """A person's leave for one program to act as one agent, within scopes, tools and a time."""

    class ClientKind(models.TextChoices):
        # A document at the address that is its name (CIMD): the host vouches for it.
        DOCUMENT = "document"
        # It has registered itself: nobody vouches for what it says of itself.
        REGISTERED = "registered"
        # Somebody of the tenant has entered it by hand: its name is theirs, and no other tenant knows it.
        ENTERED = "entered"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="connections")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="connections")
    member = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="connections")
    client_id = models.CharField(max_length=255)
    client_kind = models.CharField(max_length=12, choices=ClientKind)
    client_name = models.CharField(max_length=60, blank=True)  # what it calls itself
    client_digest = models.CharField(max_length=71)  # of all that it says of itself
    # Who has vouched for the member, who was shown no page; None: they were.
    issuer = models.ForeignKey(TrustedIssuer, models.PROTECT, null=True, blank=True, related_name="connections")
    redirect_host = models.CharField(max_length=255, blank=True)  # where the answer went; empty: no browser was sent
    resource = models.CharField(max_length=300)  # the audience of its tokens
    scopes = models.JSONField(default=list)
    tools = models.JSONField(null=True, blank=True)  # names; None: all that the agent is given, now and later
    refreshable = models.BooleanField(default=True)  # False: for this once
    until = models.DateTimeField()  # it ends then in any case
    # Of the code that opened it, and of the form that was sent for it; where nobody was asked, of nothing that is known.
    code_digest = models.CharField(max_length=64, unique=True)
    form_digest = models.CharField(max_length=64, unique=True)
    redeemed_at = models.DateTimeField(null=True, blank=True)
    redeemed_from = models.CharField(max_length=64, blank=True)  # the network
    last_used_at = models.DateTimeField(null=True, blank=True)  # written at most once a minute
    last_used_from = models.CharField(max_length=64, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=64, blank=True)
    end_reason = models.CharField(max_length=32, blank=True)
    opened_at = models.DateTimeField()

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(until__gt=F("opened_at")), name="connection_ends_after_it_was_opened"),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_by="", end_reason="")
                | Q(ended_at__isnull=False) & ~Q(ended_by="") & ~Q(end_reason=""),
                name="connection_ended_by_somebody_because",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="connection_of_tenant"),
            models.Index(fields=["client_id"], name="connection_of_client"),
        ]

    def __str__(self) -> str:
        return f"{self.client_name or self.client_id} as {self.agent_id}"

    @property
    def wire_id(self) -> str:
        return encode("con", self.id)

    @property
    def client_host(self) -> str:
        """Who vouches for the program; empty: nobody."""
        return urlsplit(self.client_id).hostname or "" if self.client_kind == self.ClientKind.DOCUMENT else ""

    @property
    def known_as(self) -> str:
        """What somebody vouches for: the host of its document, or the name by which it was entered; empty: nothing."""
        return self.client_name if self.client_kind == self.ClientKind.ENTERED else self.client_host


class AssertionRule(models.Model):
    """What an identity provider may vouch for: that its people let programs act as this agent, and how far, without being asked."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    issuer = models.OneToOneField(TrustedIssuer, models.CASCADE, related_name="assertion_rule")
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="assertion_rules")
    scopes = models.JSONField(default=list)  # at most these
    tools = models.JSONField(null=True, blank=True)  # names; None: all that the agent is given, now and later
    token_minutes = models.PositiveIntegerField()  # so long is a token good that was given for one assertion
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(token_minutes__gte=1), name="assertion_rule_gives_tokens_that_last")
        ]

    def __str__(self) -> str:
        return f"{self.issuer} vouches for {self.agent}"


class ConnectionRule(models.Model):
    """How far the people of a tenant may go who let programs act as agents. Where it says nothing, as far as the hub."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.OneToOneField(Tenant, models.PROTECT, related_name="connection_rule")
    days = models.PositiveIntegerField(null=True, blank=True)  # a connection ends after so many
    idle_days = models.PositiveIntegerField(
        null=True, blank=True
    )  # and after so many in which nothing was fetched for it
    token_minutes = models.PositiveIntegerField(null=True, blank=True)  # so long is an access token good
    # A sign-in at most so long ago lets programs use what changes things; None: any.
    sign_in_minutes = models.PositiveIntegerField(null=True, blank=True)
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(days__gte=1) | Q(days=None), name="connection_rule_lets_connections_last_a_day"
            ),
        ]

    def __str__(self) -> str:
        return f"Connections of {self.tenant}"


class EnteredClient(models.Model):
    """Whose a program is that was entered by hand: the rows of django-oauth-toolkit know no tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="entered_clients")
    application = models.OneToOneField("oauth2_provider.Application", models.CASCADE, related_name="entered")
    entered_by = models.CharField(max_length=64)
    entered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="entered_client_of_tenant")]

    def __str__(self) -> str:
        return f"{self.application} of {self.tenant_id}"

    @property
    def wire_id(self) -> str:
        return encode("cli", self.id)

    @property
    def client_id(self) -> str:
        return str(self.application.client_id)

    @property
    def name(self) -> str:
        return str(self.application.name)

    @property
    def redirect_uris(self) -> list[str]:
        return str(self.application.redirect_uris).split()

    @property
    def is_confidential(self) -> bool:
        """Whether the program keeps a secret."""
        return bool(self.application.client_type == "confidential")


class ConnectionToken(models.Model):
    """What the program of a connection shows. The text is kept nowhere; what is good for once stays, to be known again."""

    class TokenKind(models.TextChoices):
        ACCESS = "access"
        REFRESH = "refresh"
        ASSERTION = "id-jag"  # by which provider and `jti` one was vouched for that is used

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    connection = models.ForeignKey(Connection, models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=TokenKind)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256, hexadecimal
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)  # of a refresh token: it was exchanged for newer ones
    used_from = models.CharField(max_length=64, blank=True)  # the network
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} token of {self.connection_id}"
