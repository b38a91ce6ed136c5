"""Rules: what a call must pass, in one order, and where each rule is looked at again after it has passed.

Preflight goes through all of :data:`RULES` when a call is made. What allowed it may be taken back later, so those that
hold again are looked at once more when a worker claims it and when its stored answer is given again; and those that say what
there is to call are looked at in lists of tools. A rule holds at the moments whose looks its check takes: :class:`Look` is any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, assert_never, get_type_hints

from access.budgets.lines import Demand, check_budgets, filter_by_grants
from access.budgets.rate_limits import check_rates
from access.consents.matcher import list_misfits
from access.consents.services import ASKING
from access.grants.matcher import CallRequirements, check_granted
from access.halts.services import check_not_halted
from access.models import Consent, ConsentMode
from access.policies.clauses import MODES
from access.problems import ConsentRequired, NoGrant, QuotaExceeded
from invocations.decide.call_accounts import check_account_still, check_answer_is_own, choose_account
from invocations.decide.input_validation import check_input
from invocations.decide.looks import LOOKS, AnswerLook, CallLook, ClaimLook, ListingLook, Look, RuleMoment
from invocations.decide.policy_denial import build_policy_denial
from invocations.end.egress_report import suggest_remedy
from invocations.metrics.call_metrics import count_validation
from invocations.model_calls.degraded_requests import degrade_request
from invocations.model_calls.model_demand import ModelDemand, build_model_demand, check_window
from invocations.model_calls.model_prices import check_priced, choose_prices
from invocations.model_calls.model_requests import check_asked_now, read_model_request
from invocations.model_calls.request_data import inspect_request
from invocations.model_calls.sent_data import (
    check_sensitive_allowed,
    prepare_sent_request,
    turn_into_sensitive,
    wants_sensitive,
)
from invocations.model_calls.tenant_providers import check_provider_ready
from invocations.model_meters.learned_counts import find_learned_counts
from invocations.problems import CalledAsModel, CapabilityBlocked
from invocations.proposals.proposal_links import find_proposal_link
from invocations.sandbox.factory import current_sandbox
from invocations.sandbox.problems import ServiceNotDry
from kernel.ids import encode
from kernel.problems import Forbidden
from llm.requests import ChatRequest
from registry.dependencies import check_ready
from registry.discovery.visibility import check_shown
from registry.problems import ToolIsModel
from registry.tools.callability import check_callable, check_model, check_not_yanked, check_offered, check_set_up
from registry.versions.compiler import compiled_version
from unitools.capabilities import list_missing_capabilities
from unitools.expressions import build_subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.grants.matcher import GrantValue
    from registry.decision_context import DecisionContext
    from unitools.expressions import Subject
    from unitools.manifest import Manifest


# The rules. Each raises what is in the way; what it returns is a note for the waterfall of a call. The type of its look says at
# which moments it holds. One that asks by the moment names each of them: at another it fails loudly, rather than let everything pass.


def check_tool(look: CallLook | ClaimLook | ListingLook) -> str | None:
    """May anybody of the tenant call it? A call that was accepted keeps its version, which may be another by now; an answer that was
    given stays good when its tool is paused or gone.
    """
    context = look.decision_context
    match look:
        case CallLook():
            look.result.version = check_callable(context)
            check_called_as_it_is(look)
            assert context.installed is not None
            return context.installed.version
        case ListingLook():
            look.found = look.manifests[check_offered(context) if look.any_state else check_shown(context)]
            check_set_up(context, look.found)
        case ClaimLook(invocation=invocation):
            check_callable(context)
            version = invocation.version
            assert version is not None
            if context.installed is not None and context.installed.version_id != version.pk:
                check_not_halted(
                    tenant_id=invocation.tenant_id,
                    publisher_id=context.installed.publisher_id,
                    agent_id=invocation.agent_id,
                    tool=invocation.tool,
                    version_id=version.pk,
                )
                check_not_yanked(version)
        case _:
            assert_never(look)
    return None


def check_called_as_it_is(look: CallLook) -> None:
    """A model is asked by its own endpoint, and a tool by its own: what comes the other way would be run as what it is not."""
    tool, part = look.call.tool, look.version.manifest.model
    if part is not None and not look.call.model_operation:
        raise ToolIsModel(
            f"{tool} is a model, and cannot be called as a tool.",
            details={"request": {"method": "POST", "path": f"/api/v1/models/{tool}/{part.operation}"}},
            remedy="Ask it as a model, and leave it out of the tools.",
        )
    if look.call.model_operation and part is None:
        raise CalledAsModel(f"{tool} is a tool, and no model.", remedy="Call it as a tool, or choose a model.")
    if part is not None:
        check_asked_now(look.call.envelope)


def check_meant_for_model(look: CallLook | ListingLook) -> None:
    match look:
        case CallLook():
            check_model(look.version.manifest, look.call.envelope.client.get("model", ""))
        case ListingLook():
            check_model(look.manifest, look.model)
        case _:
            assert_never(look)


def check_arguments(look: CallLook) -> str | None:
    if not look.call.has_arguments:
        return "asked without arguments"
    look.size = len(look.call.body)
    if look.call.unusable is not None:
        count_validation("input", valid=False)
        raise look.call.unusable
    check_input(look.version, look.call.arguments, look.call.body, today=look.now.date())
    if (part := look.version.manifest.model) is not None:
        look.result.model_request = request = read_model_request(look.call, part)
        if isinstance(request, ChatRequest):
            look.result.model_prefix = look.provider.prefix
        check_window(request, part, look.result.model_prefix)
        held = look.result.held_files = look.call.held_files
        own_tools = look.call.shown_tools[len(look.call.shown_tools) - look.call.own_tools :]
        tenant_id = look.decision_context.tenant_id
        look.result.request_data = inspect_request(request, held, own_tools, tenant_id=tenant_id)
    return None


def check_proposal(look: CallLook) -> str | None:
    """Where a call says which answer of a model proposed it: did that answer?"""
    context = look.decision_context
    link = find_proposal_link(look.call, tenant_id=context.tenant_id, agent_id=context.agent_id)
    look.result.proposal = link
    return None if link is None else f"proposed by {encode('inv', link.invocation_id)}"


def check_agent_in_use(look: Look) -> None:
    if not look.decision_context.agent_in_use:
        disabled = (
            "The agent was disabled while the call waited."
            if look.moment is RuleMoment.CLAIM
            else f"The agent {look.decision_context.agent_name} is disabled."
        )
        raise Forbidden(disabled, remedy="Ask an operator to enable it.")


def check_key_in_force(look: Look) -> None:
    """A call that was accepted may go on when its key has run out meanwhile, and not when it was revoked."""
    if look.moment is RuleMoment.CLAIM:
        if look.decision_context.key_revoked:
            raise Forbidden(
                "The key of this call was revoked while the call waited.", remedy="Call again with another key."
            )
    elif look.decision_context.key_in_force is False:
        raise Forbidden("The key of this call was revoked or has expired.", remedy="Use the key that replaces it.")


def check_connection(look: Look) -> str | None:
    """Where a person has let a program act as the agent: do they still, and with this tool?"""
    connection, tool = look.decision_context.connection, look.decision_context.tool
    if connection is None:
        return None
    if not connection.in_force:
        raise Forbidden(
            "The connection of this program has ended, or who opened it may not let programs act as this agent any more.",
            remedy="Connect the program again.",
        )
    if connection.tools is not None and tool not in connection.tools:
        raise Forbidden(
            f"The person who connected this program did not include {tool}.",
            remedy="Connect the program again, with this tool.",
        )
    return connection.wire_id


def check_grant(look: CallLook | AnswerLook | ListingLook | ClaimLook) -> str | None:
    """Does a grant in force cover the call? A claim asks for the very one that it was accepted under."""
    context = look.decision_context
    match look:
        case CallLook():
            version, arguments = look.version, look.call.arguments
            grants = context.grants if look.call.has_arguments else _without_conditions(context)
            wanted = _required_by(version.manifest, version.subject, context, arguments)
            look.grants = check_granted(grants, wanted, now=look.now)
            look.result.grant = look.grants[0]
            return look.grants[0].tools
        case AnswerLook(invocation=earlier):
            assert earlier.version_id is not None
            version = compiled_version(earlier.version_id)
            wanted = _required_by(version.manifest, version.subject, context, look.call.arguments)
            check_granted(context.grants, wanted, now=look.now)
        case ListingLook(manifest=manifest):
            wanted = _required_by(manifest, build_subject(manifest), context, None)
            check_granted(_without_conditions(context), wanted, now=look.now)
        case ClaimLook(invocation=invocation):
            if invocation.grant_id not in {grant.id for grant in context.grants}:
                raise NoGrant(
                    "The grant of this call was revoked or ran out while the call waited.",
                    remedy="Ask an operator for a grant.",
                )
        case _:
            assert_never(look)
    return None


def _required_by(manifest: Manifest, tool: Subject, context: DecisionContext, arguments: Any) -> CallRequirements:
    """The call as far as grants decide about it. ``tool``: how expressions see it."""
    names = [each["name"] for each in manifest.secrets]
    return CallRequirements(
        tool=tool,
        agent_id=context.agent_id,
        agent_name=context.agent_name,
        arguments=arguments,
        scopes=manifest.scopes,
        capabilities=manifest.capabilities | ({"secrets": names} if names else {}),
    )


def _without_conditions(context: DecisionContext) -> tuple[GrantValue, ...]:
    """Where there are no arguments, what grants ask of them is told and held against nothing."""
    return tuple(grant._replace(conditions=()) for grant in context.grants)


def check_account(look: CallLook | ClaimLook | AnswerLook) -> str | None:
    """Where a server elsewhere is asked as the person whom a call is for: is their account there connected, for this agent? A stored
    answer is given to the same person only.
    """
    context = look.decision_context
    match look:
        case CallLook():
            look.result.account = choose_account(look.call, context, look.version.manifest)
            return look.result.account.wire_id if look.result.account else None
        case ClaimLook(invocation=invocation):
            if invocation.account_id is not None:
                check_account_still(invocation)
        case AnswerLook(invocation=earlier):
            if earlier.account_id is not None:
                check_answer_is_own(earlier.account_id, look.call, context)
        case _:
            assert_never(look)
    return None


def check_quota(look: CallLook) -> None:
    """The first grant whose budgets, with those of tenant, agent and tool, have room for the call. What an accepted call may take was
    reserved for it.
    """
    refusals: list[QuotaExceeded] = []
    candidates: list[GrantValue | None] = [*look.grants] or [None]
    model_demand = compute_model_demand(look)
    for grant in candidates:
        reach = look.resolve_profile_under(grant)
        limits = reach.profile.limits
        demand = Demand(
            bytes_in=look.size,
            bytes_out=limits.result_bytes + limits.artifact_bytes,
            cpu_ms=0 if look.version.manifest.is_model else limits.cpu_s * 1000,
            tokens=model_demand.tokens if model_demand else 0,
            money=look.verdict.price_micros + ((model_demand.cost_micros or 0) if model_demand else 0),
        )
        lines = filter_by_grants(look.decision_context.lines, grant.ids if grant else ())
        look.result.demand, look.result.lines = demand, lines
        try:
            check_budgets(lines, demand, look.now)
            check_rates(lines)
        except QuotaExceeded as refusal:
            refusals.append(refusal)
        else:
            look.result.grant = grant
            return
    raise min(refusals, key=lambda refusal: refusal.retry_after or float("inf"))  # the grant that serves again first


def compute_model_demand(look: CallLook) -> ModelDemand | None:
    """The most that a call of a model may take; None for a tool, and where it is not known what is asked for."""
    request, part = look.result.model_request, look.version.manifest.model
    if request is None or part is None:
        return None
    request = look.result.model_request = degrade_request(request, look.verdict.degradation)
    tenant_id = look.decision_context.tenant_id
    prices, learned = choose_prices(part, look.provider), find_learned_counts(tenant_id, part.provider, part.name)
    demand = look.result.model_demand = build_model_demand(request, prices, learned, prefix=look.result.model_prefix)
    check_priced(demand.cost_micros, part)
    return demand


CONSENT_GONE = {
    RuleMoment.CLAIM: "The consent of this call was revoked or ran out while the call waited.",
    RuleMoment.ANSWER: "The consent of the first call was revoked or ran out since.",
}


def check_consent(look: CallLook | ClaimLook | AnswerLook) -> str | None:
    """Has a person agreed? Later only whether what the call went ahead with still stands; one for once was spent by it. A tool that
    needs a consent is listed, since an agent can ask for one.
    """
    match look:
        case CallLook():
            return _choose_consent(look)
        case ClaimLook(invocation=invocation) | AnswerLook(invocation=invocation):
            if invocation.consent_id is None:  # most: to build what would be asked takes longer than all other rules
                return None
            still_valid = Consent.objects.spent_or_valid(look.decision_context.at)
            if not still_valid.filter(pk=invocation.consent_id).exists():
                raise ConsentRequired(CONSENT_GONE[look.moment], remedy="Ask for consent again.")
        case _:
            assert_never(look)
    return None


def _choose_consent(look: CallLook) -> str:
    manifest, demanded = look.version.manifest, look.verdict.consent
    needed = look.version.needs_consent or demanded is not None
    # Consent is for the effect. What only reads does the same in a dry run, so it is asked for there too.
    if needed and look.dry_run and manifest.side_effect not in ("None", "Read"):
        return "dry run"
    if not needed:
        # A rule may have let the call through because there is one: then it goes ahead with it, and one for once is spent.
        if not any("consent" in layer.asked for layer in look.decision_context.layers):
            return "not needed"
        look.result.consent = None if look.dry_run else look.find_consent_within(manifest.consent_scope)
        return encode("cns", look.result.consent.id) if look.result.consent else "not needed"
    look.result.needs_consent = True
    widest = manifest.consent_scope if look.version.needs_consent else MODES[0]
    if demanded is not None:
        widest = max(widest, demanded.mode, key=MODES.index)
    bounded = demanded is not None and demanded.mode != ConsentMode.STANDING
    found = look.find_consent_within(widest, validity_s=demanded.validity_s if demanded and bounded else None)
    if found is None:
        raise _consent_missing(look, widest)
    look.result.consent = found
    return encode("cns", found.id) if found else ""


def _consent_missing(look: CallLook, widest: str) -> ConsentRequired:
    tool, demanded, consents = look.decision_context.tool, look.verdict.consent, look.decision_context.consents
    return ConsentRequired(
        f"A person must agree before this agent uses {tool}.",
        remedy="Ask a person who may decide to agree, and call again once they have.",
        details={
            "tool": tool,
            "mode": widest,
            "rules": list(demanded.rules) if demanded else [],
            "others": list_misfits(consents, **look.consent_binding) if consents else [],
            "on_consent": ASKING,
            **({"data_classes": sorted(look.classes_to_allow)} if look.classes_to_allow else {}),
            "request": {"method": "POST", "path": "/api/v1/consents", "body": {"tool": tool, "purpose": "…"}},
        },
    )


def check_policy(look: CallLook) -> str:
    """Do the policies permit it? And what remains of what the tool asks for? A call keeps both as it was accepted under them."""
    if not look.verdict.allowed:
        denial = build_policy_denial(look.verdict, look.decision_context)
        if look.result.request_data is None:
            raise denial
        raise turn_into_sensitive(denial, look.verdict, look.decision_context.layers) or denial
    look.result.reach = look.resolve_profile_under(look.result.grant)
    return look.result.policy_label


def check_sent_data(look: CallLook) -> str | None:
    """May what a request holds be sent to the model's provider? From here on it is what may be sent."""
    request, data = look.result.model_request, look.result.request_data
    if request is None or data is None:
        return None
    if wants_sensitive(request):
        check_sensitive_allowed(look.verdict, look.decision_context.layers)
    obligations, provider = look.verdict.obligations, look.version.manifest
    look.result.model_request, sent = prepare_sent_request(request, data, provider, obligations)
    look.result.sent_data = sent
    return f"{sum(sent.masked.values())} masked" if sent.masked else None


def check_sandbox(look: CallLook) -> None:
    """A call that could only fail for want of a capability is refused before it starts; of a model, for want of its provider."""
    if (part := look.version.manifest.model) is not None:
        check_provider_ready(part, look.provider)
        return
    assert look.result.reach is not None
    tool = look.decision_context.tool
    if (lacks := list_missing_capabilities(look.result.reach.explanation)) and not look.dry_run:
        first = lacks[0]
        raise CapabilityBlocked(
            f"{tool} needs {first['capability']}, which the {first['dropped_by']} does not allow.",
            details={"missing": [entry["capability"] for entry in lacks], "dropped": lacks},
            remedy=f"Ask an operator to widen the {first['dropped_by']} by {first['capability']}.",
        )
    by_gate = look.version.manifest.is_by_gate
    if by_gate and look.dry_run and look.version.manifest.side_effect not in ("None", "Read"):
        raise ServiceNotDry(
            f"{tool} asks a service, which has no dry runs.",
            remedy="Use preflight to see whether the call would be allowed; a dry run would change something at the service.",
        )
    if missing := current_sandbox().missing(look.result.reach.profile, by_gate=by_gate):
        raise CapabilityBlocked(
            f"This hub's sandbox cannot provide: {', '.join(missing)}.",
            details={"missing": list(missing)},
            remedy=suggest_remedy(missing),
        )
    check_ready(look.version.id, look.version.manifest)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``step``: the step of preflight that shows it; the rules of a step stand together."""

    name: str
    step: str
    check: Callable[[Any], str | None]

    @property
    def holds_again(self) -> frozenset[RuleMoment]:
        """The moments after the call at which it holds."""
        return read_moments(self.check) - {RuleMoment.CALL}


@cache
def read_moments(check: Callable[[Any], str | None]) -> frozenset[RuleMoment]:
    """The moments whose looks a check takes."""
    taken = get_type_hints(check)["look"]
    return frozenset(each.moment for each in LOOKS if issubclass(each, taken))


RULES: tuple[Rule, ...] = (
    Rule("tool", "tool", check_tool),
    Rule("model", "tool", check_meant_for_model),
    Rule("arguments", "input_schema", check_arguments),
    Rule("proposal", "input_schema", check_proposal),
    Rule("agent", "grant", check_agent_in_use),
    Rule("key", "grant", check_key_in_force),
    Rule("connection", "grant", check_connection),
    Rule("grant", "grant", check_grant),
    Rule("account", "grant", check_account),
    Rule("quota", "quota", check_quota),
    Rule("consent", "consent", check_consent),
    Rule("policy", "profile", check_policy),
    Rule("data", "profile", check_sent_data),
    Rule("sandbox", "sandbox_guard", check_sandbox),
)


def check_again(look: Look) -> None:
    """Raise what is in the way of the call by now, by every rule that holds at this moment."""
    for rule in RULES:
        if look.moment in rule.holds_again:
            rule.check(look)
