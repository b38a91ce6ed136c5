"""Roles: which ones people have, and what each allows.

Roles are groups per tenant that hold these permissions on the tenant, kept by django-guardian: a permission may also be
given to one person alone.
"""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

PERMISSIONS: dict[str, str] = {
    "tools.view": _("See the catalogue"),
    "tools.submit": _("Submit tool versions"),
    "tools.review": _("Approve or refuse submitted versions"),
    "tools.operate": _("Enable, pause, stage, yank and deprecate tools"),
    "tools.install": _("Install and configure tools for the tenant"),
    "tools.trust": _("Mark versions as trusted to run without a sandbox"),
    "publishers.manage": _("Manage the keys whose signatures on packages are accepted"),
    "models.manage": _("Connect model providers and models, change and remove them"),
    "playground.use": _("Talk with models in the playground"),
    "secrets.manage": _("Set and remove secrets"),
    "files.manage": _("Store, read and remove the files that tools may use"),
    "halts.throw": _("Throw and lift kill switches"),
    "agents.view": _("See agents and their keys"),
    "agents.manage": _("Create agents and keys"),
    "agents.connect": _("Let programs act as an agent"),
    "members.view": _("See people and their roles"),
    "members.manage": _("Invite people and change their roles"),
    "issuers.manage": _("Trust identity providers"),
    "notifications.manage": _("Choose where notifications are sent"),
    "grants.view": _("See grants"),
    "grants.give": _("Give and revoke grants"),
    "grants.request": _("Request a grant on behalf of an agent"),
    "consents.view": _("See consents"),
    "consents.decide": _("Approve, deny and revoke consents"),
    "budgets.view": _("See budgets"),
    "budgets.manage": _("Set and end budgets"),
    "policies.view": _("See policies"),
    "policies.draft": _("Draft and simulate policies"),
    "policies.publish": _("Publish policies that somebody else drafted"),
    "configuration.apply": _("Apply and export the tenant's configuration"),
    "invocations.view": _("See calls"),
    "invocations.cancel": _("End calls that are waiting or running"),
    "invocations.resolve": _("Resolve calls with an unknown outcome"),
    "invocations.replay": _("Replay calls to compare, with a reason"),
    "sinks.manage": _("Choose where events of the tenant are sent"),
    "evidence.view": _("Browse evidence"),
    "evidence.reveal": _("Reveal stored values, with a reason"),
    "evidence.erase": _("Erase a person's data"),
    "evidence.retain": _("Set how long values are kept"),
}

# What a person may be given on a single tool or agent, and do with that one only (access/object_permissions/rules.py).
ON_TOOL: dict[str, str] = {
    "tools.review": _("Approve or refuse its submitted versions"),
    "tools.operate": _("Enable, pause, stage, yank, share and deprecate it"),
    "tools.install": _("Configure, pause and remove its installation"),
    "tools.trust": _("Mark its versions as trusted to run without a sandbox"),
}
ON_AGENT: dict[str, str] = {
    "agents.manage": _("See it, disable and enable it, create and revoke its keys"),
    "agents.connect": _("Let programs act as it"),
}

# What concerns every tenant; held by members of the Django group HUB_OWNERS, whichever tenant they act in.
HUB_PERMISSIONS: dict[str, str] = {"hub.manage": _("Manage the whole hub: tenants, the hub's policy, its kill switch")}
HUB_OWNERS = "hub owners"


class Role(TextChoices):
    OWNER = "owner", gettext_lazy("Owner")
    OPERATOR = "operator", gettext_lazy("Operator")
    REVIEWER = "reviewer", gettext_lazy("Reviewer")
    AUDITOR = "auditor", gettext_lazy("Auditor")
    DEVELOPER = "developer", gettext_lazy("Developer")


_SEE = {
    *("tools.view", "grants.view", "consents.view", "invocations.view", "agents.view"),
    *("budgets.view", "policies.view", "members.view"),
}

ROLE_PERMISSIONS: dict[str, frozenset[str]] = {
    Role.OWNER: frozenset(PERMISSIONS) - {"evidence.reveal"},
    Role.OPERATOR: frozenset(
        _SEE
        | {
            "tools.submit",
            "tools.review",
            "tools.operate",
            "tools.install",
            "models.manage",
            "playground.use",
            "secrets.manage",
            "files.manage",
            "halts.throw",
        }
        | {"agents.manage", "agents.connect", "grants.give", "grants.request", "consents.decide", "budgets.manage"}
        | {
            "invocations.cancel",
            "invocations.resolve",
            "invocations.replay",
            "policies.draft",
            "policies.publish",
            "evidence.view",
        }
    ),
    Role.REVIEWER: frozenset(_SEE | {"tools.review"}),
    Role.AUDITOR: frozenset(_SEE | {"invocations.replay", "evidence.view", "evidence.reveal"}),
    Role.DEVELOPER: frozenset({"tools.view", "tools.submit", "grants.request", "invocations.view", "playground.use"}),
}

# What an agent's key may carry. `plural:verb`. For people only: deciding (reviews, consents, publishing a policy), and changing
# what people may do. An agent that could make somebody an operator could approve, as them, what it asked for itself.
SCOPES: dict[str, str] = {
    "tools:read": _("Discover tools"),
    "tools:register": _("Submit tool versions"),
    "tools:operate": _("Enable, pause, yank and deprecate tools; install and configure them"),
    "models:manage": _("Connect model providers and models, change and remove them"),
    "models:call": _("Find and call models"),
    "publishers:manage": _("Manage the keys whose signatures on packages are accepted"),
    "invocations:create": _("Preflight and invoke tools"),
    "invocations:read": _("Read the agent's own calls and their evidence"),
    "consents:request": _("Ask for consent and see its state"),
    "grants:request": _("Request a grant"),
    "grants:manage": _("Give and revoke grants"),
    "delegations:create": _("Delegate grants of the agent to other agents, and withdraw them"),
    "budgets:read": _("See budgets"),
    "budgets:manage": _("Set and end budgets"),
    "policies:read": _("See policies"),
    "policies:draft": _("Draft and simulate policies"),
    "files:manage": _("Store, read and remove the files that tools may use"),
    "halts:throw": _("Throw kill switches"),
    "agents:manage": _("Create agents and keys"),
    "members:read": _("See people, their roles and who is invited"),
    "issuers:manage": _("Trust identity providers and say for which agents their tokens speak"),
    "notifications:manage": _("Choose where notifications are sent"),
    "sinks:manage": _("Choose where events of the tenant are sent"),
    "configuration:apply": _("Apply and export the tenant's configuration"),
    "evidence:read": _("Read the log of facts: leaves, proofs, verifications and exports"),
    "evidence:export": _("Export evidence and have the log verified"),
    "evidence:erase": _("Erase a person's data"),
    "evidence:retain": _("Set how long values are kept"),
}
# What a person must hold to give a scope to a key or a token; whoever manages agents gives the others.
SCOPE_NEEDS: dict[str, str] = {
    "tools:register": "tools.submit",
    "tools:operate": "tools.operate",
    "publishers:manage": "publishers.manage",
    "models:manage": "models.manage",
    "grants:request": "grants.request",
    "grants:manage": "grants.give",
    "delegations:create": "grants.give",
    "budgets:read": "budgets.view",
    "budgets:manage": "budgets.manage",
    "policies:read": "policies.view",
    "policies:draft": "policies.draft",
    "files:manage": "files.manage",
    "halts:throw": "halts.throw",
    "agents:manage": "agents.manage",
    "members:read": "members.view",
    "issuers:manage": "issuers.manage",
    "notifications:manage": "notifications.manage",
    "sinks:manage": "sinks.manage",
    "configuration:apply": "configuration.apply",
    "evidence:read": "evidence.view",
    "evidence:export": "evidence.view",
    "evidence:erase": "evidence.erase",
    "evidence:retain": "evidence.retain",
}
AGENT_SCOPES = ("tools:read", "invocations:create", "invocations:read", "consents:request", "grants:request")
