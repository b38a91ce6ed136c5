"""Request preparations: what must be the case before some requests of :mod:`tests.support.request_bodies` are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access import services as access
from access.members import services as members
from access.models import AgentIdentity, AssertionRule, PolicyVersion
from evidence.models import SavedSearch
from evidence.services import compute_user_fingerprint
from invocations.agent_runs.models import AgentRun
from invocations.models import Invocation
from invocations.playground.models import Playground, PlaygroundConversation
from invocations.replays.models import Replay, What
from invocations.saved_views.models import SavedView
from invocations.tries.services import MARK
from kernel.database.connections import database_time
from registry.installations import services as installations
from registry.model_providers.services import pause_provider
from registry.models import Decision
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.support.connected_models import PROVIDER
from tests.support.import_sources import bring_remote_tool
from tests.support.populated_tenant import ECHO, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.principal import Principal
    from tests.support.populated_tenant import Things


def _pause_tool(things: Things, by: Principal) -> None:
    lifecycle.pause_tool(name=ECHO, reason="for a test", by=things.people["first"].by)


def _share_tool(things: Things, by: Principal) -> None:
    lifecycle.share_tool(name=ECHO, reason="for a test", by=things.people["first"].by)


def _pause_installation(things: Things, by: Principal) -> None:
    installations.pause_installation(name=ECHO, reason="for a test", by=things.people["first"].by)


def _pause_provider(things: Things, by: Principal) -> None:
    pause_provider(name=PROVIDER, reason="for a test", by=things.people["first"].by)


def _disable_agent(things: Things, by: Principal) -> None:
    access.disable_agent(agent_id=things.caller.agent.pk, reason="for a test", by=things.people["first"].by)


def _hand_over_draft(things: Things, by: Principal) -> None:
    """Only who wrote a draft changes it."""
    PolicyVersion.objects.filter(pk=things.named["policy_id"]).update(drafted_by=by.id)


def _give_permission(things: Things, by: Principal) -> None:
    owner = things.people["owner"].by
    members.give_permission(user_id=things.named["user_id"], permission="halts.throw", by=owner)


def _give_exception(things: Things, by: Principal) -> None:
    owner, user_id = things.people["owner"].by, things.named["user_id"]
    members.give_permission(user_id=user_id, permission="agents.manage", on=things.caller.agent, by=owner)


def _map_no_scopes(things: Things, by: Principal) -> None:
    """Whoever changes the keys of an issuer must hold what its subjects have, and be their agent or manage it."""
    AgentIdentity.objects.update(scopes=[], agent=things.robot.agent)


def _let_vouch(things: Things, by: Principal) -> None:
    """The agent is who changes it, as for the keys."""
    terms = {"agent": things.robot.agent, "scopes": ["tools:read"], "token_minutes": 5}
    AssertionRule.objects.create(issuer_id=things.named["issuer_id"], set_by=by.id, set_at=database_time(), **terms)


def _hand_over_search(things: Things, by: Principal) -> None:
    SavedSearch.objects.filter(pk=things.named["search_id"]).update(owner=by.id)


def _hand_over_view(things: Things, by: Principal) -> None:
    SavedView.objects.filter(pk=things.named["view_id"]).update(owner=by.id)


def _forget_playground(things: Things, by: Principal) -> None:
    Playground.objects.filter(tenant=things.tenant).delete()


def _hand_over_talk(things: Things, by: Principal) -> None:
    """Only who began a conversation sees it, when they decide on no consents, and goes on with it."""
    PlaygroundConversation.objects.filter(pk=things.named["conversation_id"]).update(person=by.id)


def _hand_over_try(things: Things, by: Principal) -> None:
    """Only who tried a tool sees what came of it."""
    of_person = {"user_fingerprint": compute_user_fingerprint(by.id, tenant_id=things.tenant.pk)}
    call = Invocation.objects.filter(pk=things.named["invocation_id"])
    call.update(request_id=f"{MARK}for a test", tool=things.named["tools.name"], **of_person)


def _hand_over_trial(things: Things, by: Principal) -> None:
    """Only who tried a version reads what it was tried with."""
    of_it = {"what": What.TRIAL, "invocation": None, "version": things.named["reviews.version_id"]}
    Replay.objects.filter(pk=things.named["replay_id"]).update(asked_by=by.id, **of_it)


def _end_talk(things: Things, by: Principal) -> None:
    _hand_over_talk(things, by)
    runs = AgentRun.objects.filter(playground_side__message__conversation=things.named["conversation_id"])
    runs.update(state="failed", finished_at=database_time())


def _bring_remote_tool(things: Things, by: Principal) -> None:
    """Its installation is paused, as one is whose server lists the tool otherwise."""
    version, first = bring_remote_tool(by=things.people["author"].by), things.people["first"].by
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="for a test", by=first)
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="for a test", by=first)
    installations.pause_installation(name=version.tool.name, reason="for a test", by=first)


def _refuse_for_consent(things: Things, by: Principal) -> None:
    del by
    Invocation.objects.filter(pk=things.named["invocation_id"]).update(reason="POLICY.CONSENT_REQUIRED", tool=WRITE)


PREPARATIONS: dict[str, Callable[[Things, Principal], None]] = {
    "tool_enable": _pause_tool,
    "tool_next_version": _bring_remote_tool,
    "api_tool_enable": _pause_tool,
    "api_tool_unshare": _share_tool,
    "api_installation_resume": _pause_installation,
    "api_model_provider_enable": _pause_provider,
    "api_agent_enable": _disable_agent,
    "policy_edit": _hand_over_draft,
    "policy_rule_new": _hand_over_draft,
    "policy_rule_remove": _hand_over_draft,
    "api_policy": _hand_over_draft,
    "api_member_permission_take": _give_permission,
    "api_member_exception_take": _give_exception,
    "api_issuer": _map_no_scopes,
    "issuer_rule_end": _let_vouch,
    "api_issuer_rule_end": _let_vouch,
    "playground_set_up": _forget_playground,
    "tool_tried": _hand_over_try,
    "tool_tried_artifact": _hand_over_try,
    "trial": _hand_over_trial,
    "trial_cancel": _hand_over_trial,
    "playground_conversation": _hand_over_talk,
    "playground_cancel": _hand_over_talk,
    "playground_send": _end_talk,
    "search_change": _hand_over_search,
    "search_delete": _hand_over_search,
    "saved_view": _hand_over_view,
    "saved_view_delete": _hand_over_view,
    "consent_ask": _refuse_for_consent,
}


def prepare(route: str, things: Things, by: Principal) -> None:
    if route in PREPARATIONS:
        PREPARATIONS[route](things, by)
