"""Models of principals: the people, agents and tenants that there are.

People sign in as Django users and act within a tenant through a :class:`Membership`; their roles are groups that hold
object permissions on the :class:`Tenant` (django-guardian). Agents act with an :class:`ApiKey`, or with a token of a
:class:`TrustedIssuer` in which an :class:`AgentIdentity` is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from access.roles import ON_AGENT, PERMISSIONS, Role
from evidence.deliveries.models import message_state
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from uuid import UUID


class Tenant(models.Model):
    """An organisation, or a part of one, whose tools, agents and evidence are its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        permissions = [(permission, label) for permission, label in PERMISSIONS.items()]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("ten", self.id)


class Membership(models.Model):
    """A person's role within a tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user", "role"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"


class Agent(models.Model):
    """A program that calls tools."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="agents")
    name = models.CharField(max_length=80)
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [(permission, label) for permission, label in ON_AGENT.items()]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="agent_name_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("agt", self.id)


class ApiKey(models.Model):
    """A credential of one agent. Only a hash is stored; ``lookup`` is the public part that people see."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="keys")
    name = models.CharField(max_length=80, blank=True)  # what it is used for
    lookup = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=64, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # written at most once a minute
    networks = models.JSONField(default=list)  # CIDRs it may be used from; empty: from anywhere
    replaces = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="replaced_by")
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="api_key_expires_after_it_was_made"
            )
        ]

    def __str__(self) -> str:
        return f"{self.lookup}… of {self.agent}"

    @property
    def wire_id(self) -> str:
        return encode("key", self.id)


class TrustedIssuer(models.Model):
    """An identity provider whose signed tokens (JWT) this tenant accepts in place of an API key."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="issuers")
    issuer = models.CharField(max_length=300)  # the `iss` claim, compared exactly
    audience = models.CharField(max_length=300)  # the `aud` claim
    jwks_url = models.CharField(max_length=500, blank=True)
    jwks = models.JSONField(null=True, blank=True)  # the keys themselves, for issuers that publish none
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "issuer"], name="trusted_issuer_once"),
            models.UniqueConstraint(  # a token leads to one tenant
                fields=["issuer", "audience"],
                condition=Q(disabled_at=None),
                name="trusted_issuer_audience_of_one_tenant",
            ),
            models.CheckConstraint(
                condition=~Q(jwks_url="", jwks=None), name="trusted_issuer_has_keys_or_says_where_they_are"
            ),
        ]

    def __str__(self) -> str:
        return self.issuer

    @property
    def wire_id(self) -> str:
        return encode("iss", self.id)


class AgentIdentity(models.Model):
    """Which agent a token's subject is, and what it may carry."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    issuer = models.ForeignKey(TrustedIssuer, models.CASCADE, related_name="identities")
    subject = models.CharField(max_length=300)  # the `sub` claim
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="identities")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="agent_identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} is {self.agent}"

    @property
    def wire_id(self) -> str:
        return encode("idn", self.id)


class Notification(models.Model):
    """Where people of a tenant are told that something waits for them, off the console."""

    class Channel(models.TextChoices):
        EMAIL = "email"
        WEBHOOK = "webhook"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="notifications")
    channel = models.CharField(max_length=8, choices=Channel)
    target = models.CharField(max_length=500)  # an address, or an https URL
    events = models.JSONField(default=list)  # names of access.notifications.services.EVENTS
    secret_key_id = models.CharField(max_length=64, blank=True)  # of the webhook's signing secret, wrapped
    secret = models.BinaryField(blank=True, default=b"")
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.channel} to {self.target}"

    @property
    def wire_id(self) -> str:
        return encode("ntf", self.id)


class Delivery(models.Model):
    """One message to one channel: written with what it tells of, sent afterwards, tried again with growing pauses."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    notification = models.ForeignKey(Notification, models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=64)
    subject = models.CharField(max_length=128)  # wire id of what it tells of
    body = models.JSONField()
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)  # None: delivered, or given up
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["next_attempt_at"], name="delivery_due", condition=Q(next_attempt_at__isnull=False))
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.notification_id}"

    @property
    def wire_id(self) -> str:
        return encode("dlv", self.id)

    @property
    def tenant_id(self) -> UUID:
        return self.notification.tenant_id

    @property
    def state(self) -> str:
        return message_state(delivered_at=self.delivered_at, next_attempt_at=self.next_attempt_at)
