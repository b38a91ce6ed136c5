"""Models of access: who is there, what each was given, and within which rules and limits."""

from access.models.budgets import Budget, BudgetScope, BudgetWindow, Dimension, Reservation
from access.models.connections import AssertionRule, Connection, ConnectionRule, ConnectionToken, EnteredClient
from access.models.consents import CONSENT_TRANSITIONS, Consent, ConsentMode, ConsentState
from access.models.display import DisplaySettings
from access.models.grants import Grant
from access.models.halts import Halt, Reach
from access.models.people import (
    Agent,
    AgentIdentity,
    ApiKey,
    Delivery,
    Membership,
    Notification,
    Tenant,
    TrustedIssuer,
)
from access.models.policies import POLICY_TRANSITIONS, PolicyState, PolicyVersion
from access.models.requests import REQUEST_TRANSITIONS, GrantRequest, RequestState
from access.models.server_accounts import (
    AccountAuthorization,
    AccountServer,
    ReturnedTokens,
    ReturnState,
    ServerAccount,
    ServerAccountState,
)

__all__ = [
    "CONSENT_TRANSITIONS",
    "POLICY_TRANSITIONS",
    "REQUEST_TRANSITIONS",
    "AccountAuthorization",
    "AccountServer",
    "Agent",
    "AgentIdentity",
    "ApiKey",
    "AssertionRule",
    "Budget",
    "BudgetScope",
    "BudgetWindow",
    "Connection",
    "ConnectionRule",
    "ConnectionToken",
    "Consent",
    "ConsentMode",
    "ConsentState",
    "Delivery",
    "Dimension",
    "DisplaySettings",
    "EnteredClient",
    "Grant",
    "GrantRequest",
    "Halt",
    "Membership",
    "Notification",
    "PolicyState",
    "PolicyVersion",
    "Reach",
    "RequestState",
    "Reservation",
    "ReturnState",
    "ReturnedTokens",
    "ServerAccount",
    "ServerAccountState",
    "Tenant",
    "TrustedIssuer",
]
