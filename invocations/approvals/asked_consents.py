"""Asked consents: a person asks that somebody consents to what an agent's call was refused for. Who asks does not decide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from access.consents.services import WIDTH, request_consent, version_range
from access.models import ConsentMode
from invocations.models import Invocation
from kernel.problems import Conflict
from registry.decision_context import load_decision_context
from registry.tools.callability import check_callable, check_known
from registry.widest_consents import widest_consent

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import Consent
    from kernel.principal import Principal

LACKED = ("POLICY.CONSENT_REQUIRED", "POLICY.CONSENT_EXPIRED", "POLICY.CONSENT_VOID")


def can_ask_consent(invocation: Invocation, *, by: Principal) -> bool:
    return invocation.reason in LACKED and invocation.is_final and by.may("grants.request")


def ask_call_consent(*, invocation_id: UUID, purpose: str, by: Principal) -> Consent:
    """Ask for what the call lacked, for its agent and its user; whoever decides may narrow it to these arguments."""
    by.check("grants.request")
    call = Invocation.objects.visible_to(by).get(pk=invocation_id)
    if not can_ask_consent(call, by=by):
        raise Conflict("This call was not refused for want of a consent.", remedy="Look at what its page says helps.")
    context = load_decision_context(tenant_id=by.tenant_id, agent_id=call.agent_id, tool=call.tool)
    check_known(context)
    version = check_callable(context)
    widest, longest = widest_consent(version, context)
    narrow = WIDTH[ConsentMode(widest)] < WIDTH[ConsentMode.PERIOD]
    return request_consent(
        tool=call.tool,
        versions=version_range(version.manifest.version),
        purpose=purpose,
        validity_s=longest,
        mode=widest if narrow else ConsentMode.PERIOD,
        widest=widest,
        data_classes=version.manifest.data_classes,
        user_fingerprint=call.user_fingerprint,
        arguments_fingerprint=call.arguments_fingerprint,
        policy_hash=call.policy_hash,
        invocation_id=call.pk,
        by=replace(by, agent_id=call.agent_id),
    )
