"""Request bodies: what is sent to each address that changes something, so that it does?

By the name of the route; a test says so when one is missing. Sent with the things of its own tenant each of these is accepted:
the table of access (``test_access_table.py``) holds that.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.support.capsules import ANOTHER, capsule, public_pem_of, shouting
from tests.support.connected_models import MODEL, PROVIDER
from tests.support.import_sources import URL, DocumentUpload, build_upload, write_document
from tests.support.manifests import manifest
from tests.support.policies import permits
from tests.support.populated_tenant import ECHO, JWKS, OFFERED, PUBLISHER, WRITE
from tests.support.served_formats import build_contents, build_texts
from toolhub.configuration import services
from toolhub.configuration.document import read_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.populated_tenant import Things

REASON = {"reason": "because of a test"}
LATER = "2999-01-01"
POLICY = permits({"id": "more", "effect": "permit", "when": {}})


def forms(things: Things) -> dict[str, dict[str, Any]]:
    """For the console."""
    agent, named = things.caller.agent, things.named
    grant = things.also["grant"]
    return {
        # People and agents.
        "agent_new": {"name": "another"},
        "agent_state": REASON,
        "key_new": {"name": "for a test", "scopes": ["tools:read"], "days": "1"},
        "key_rotate": {"overlap_days": "1"},
        "key_revoke": REASON,
        "connection_end": {},
        "connection_rule": {"days": "7"},
        "client_new": {"name": "another", "redirect_uris": "https://new.example.org/callback"},
        "client_remove": REASON,
        "account_server_client": {"resource": f"https://{things.word}.example.org/mcp", "client_id": "hub"},
        "person_new": {"username": "nora", "roles": ["auditor"]},
        "person_roles": {"roles": ["auditor"], **REASON},
        "person_permissions": {"permission": "evidence.view", "action": "give"},
        "person_exceptions": {"permission": "tools.review", "thing": ECHO, "action": "give"},
        "person_link": {"again": "yes"},
        "hub_owners": {"username": things.people["first"].user.username, "action": "give"},
        "tenant_new": {"name": "Another", "slug": "another"},
        "issuer_new": {
            "issuer": "https://new.example.org", "audience": "new", "jwks": json.dumps(JWKS),
        },
        "issuer_edit": {"audience": "changed", "jwks": json.dumps(JWKS)},
        "issuer_distrust": REASON,
        "issuer_rule_set": {
            "rule-agent": str(agent.pk), "rule-scopes": ["tools:read"], "rule-tools": "", "rule-token_minutes": "5",
        },
        "issuer_rule_end": {},
        "issuer_subject_add": {"subject": "another", "agent": str(agent.pk), "scopes": ["tools:read"]},
        "issuer_subject_remove": {"identity": str(things.also["identity"].pk)},
        "notification_new": {"channel": "email", "target": "new@example.org", "events": ["consent.requested"]},
        "notification_end": REASON,
        "delivery_again": {"again": "yes"},
        "callback_new": {"name": "another", "url": "https://new.example.org/hook"},
        "callback_rotate": {"overlap_hours": "1"},
        "verification_new": {"start": "0", "stop": "1"},
        "export_new": {"format": "csv", "query": "outcome:failed"},
        "export_cancel": {},
        "erasure_new": REASON | {"user_id": "user-1"},
        "erasure_confirm": REASON | {"user_id": "user-1", "confirm": things.named["confirmation"]},
        "retention": {"keep_logs": "30"},
        "sink_new": {
            "name": "another", "channel": "webhook", "url": "https://new.example.org/events", "mode": "batched",
            "max_mb": "64",
        },
        "sink_pause": REASON,
        "sink_resume": {},
        "sink_test": {},
        "sink_rotate": {"overlap_hours": "1"},
        "sink_end": REASON,
        "callback_disable": REASON,
        "callback_again": {},
        # What they were given.
        "grant_new": {"agent": str(agent.pk), "tools": "other.*", **REASON},
        "grants_revoke": {"grant": grant.wire_id, "confirm": "revoke 1", **REASON},
        "grant_extend": {"expires_at": f"{LATER}T12:00", **REASON},
        "grant_revoke": REASON,
        "grant_request_new": {"agent": str(agent.pk), "tools": "more.*", "purpose": "to test"},
        "grant_request_approve": {"tools": "other.*", **REASON},
        "grant_request_decline": REASON,
        "explain_request": {"agent": things.robot.agent.wire_id, "tool": ECHO},
        "consent_decide": {"decision": "approve", "mode": "once", **REASON},
        "consent_try": {},
        "consents_revoke": {"consent": things.also["approved"], "confirm": "revoke 1", **REASON},
        # Rules and limits.
        "halts_throw": {"reach": "agent", "agent": agent.wire_id, **REASON},
        "halts_lift": REASON,
        "policy_new": {"layer": "tenant", "text": json.dumps(POLICY)},
        "policy_edit": {"text": json.dumps(POLICY)},
        "policy_rule_new": {"tools": "other.*"},
        "policy_rule_remove": {"rule": "noted"},
        "policy_discard": REASON,
        "policy_preview": {"calls": "10"},
        "policy_publish": REASON,
        "policy_roll_back": REASON,
        "budget_new": {
            "scope": "agent", "agent": str(agent.pk), "dimension": "calls", "amount": "5", "window_s": "3600", **REASON,
        },
        "budget_edit": {"amount": "5", **REASON},
        "budget_raise": {"amount": "5", **REASON},
        "budget_end": REASON,
        # Tools.
        "import_document": {"file": build_upload("another"), "group": "acme.another"},
        "import_remote": {"url": URL},
        "import_package": {"package": "mcp-server-time"},
        "known_source_take": {"known": "time"},
        "import_choose": {"names": ["getPrice"]},
        "import_submit": {},
        "import_remove": {},
        "import_draft": {
            "description": "Gives it.", "side_effect": "Read", "safety_class": "Low", "timeout_ms": "5000",
        },
        "import_draft_remove": {},
        "tool_next_version": {},
        "tool_files_empty": {},
        "tool_submit": {"text": json.dumps(manifest("raises"))},
        "tool_enable": {"version": "", **REASON},
        "tool_pause": REASON,
        "tool_deprecate": {"sunset_on": LATER, "confirm": ECHO, **REASON},
        "tool_share": REASON,
        "version_stage": {"tenants": things.tenant.slug, **REASON},
        "version_yank": {"confirm": str(named["version"]), **REASON},
        "version_trust": REASON,
        "version_dependencies_retry": {},
        "review_decide": {"decision": "approve", "note": "because of a test"},
        "install": REASON,
        "installation_configure": {"pin": "^1", **REASON},
        "installation_change": REASON,
        "secrets": {"name": "shop.other", "value": "not shown anywhere"},
        "model_provider_new": {"name": "other", "kind": "anthropic", **REASON},
        "model_provider_edit": {"kind": "scripted", "retries": "1", **REASON},
        "model_provider_change": REASON,
        "model_new": {"provider": PROVIDER, "alias": "other", **MODEL_TERMS},
        "model_edit": MODEL_TERMS,
        "model_change": REASON,
        "model_price_add": {"provider": "other", "model": "script", "effective_from": LATER, "input": "1.5", **REASON},
        "model_prices_new": {"document": '{"prices": []}', **REASON},
        "secret_remove": {},
        "publisher_keys": {"name": "another", "public_key": public_pem_of(ANOTHER)},
        "publisher_key_revoke": REASON,
        "publishing_change": {},
        "files": {"path": "/data/of/other.csv", "text": "not shown anywhere"},
        "artifact_remove": {},
        "file_take": {},
        "file_remove": {},
        # All of it at once.
        "configuration": {"do": "plan", "text": json.dumps(configuration(things))},
        # Evidence.
        "invocation_cancel": {},
        "invocation_resolve": {"resolution": "took_effect", **REASON},
        "replay_new": REASON,
        "replay_period": {"what": "decisions", "since": "2026-01-01", "until": "2026-01-02", "most": "10", **REASON},
        "replay_cancel": {},
        "replay_values": REASON,
        "chain_cancel": {},
        "agent_run_cancel": {},
        "submission_capsule": {"capsule": DocumentUpload("voice.capsule", capsule(shouting(name="brought")).data)},
        "submission_python": {"source": PYTHON_FILE, "group": "acme.words", "version": "1.0.0"},
        "tool_try": {"token": TRIED, "caller": _find_talker(things), "mode": "dry", "view": "json", "raw": "{}"},
        "trial_cancel": {},
        "trial_new": {"view": "json", "raw": '{"text": "x"}'},
        "playground_set_up": {"name": "talker", "models": [MODEL], "money": "1", **REASON},
        "playground_begin": MESSAGE,
        "playground_send": MESSAGE,
        "playground_cancel": {},
        "playground_decide": {"decision": "approve", "mode": "once", **REASON},
        "agent_run_values": REASON,
        "invocation_values": REASON,
        "searches": {"name": "another", "query": "outcome:failed"},
        "shortcuts": {"keys": "off"},
        "call_columns": {"column": ["cost"]},
        "saved_views": {"name": "another", "query": "outcome:failed"},
        "saved_view_delete": {},
        "consent_ask": {"purpose": "To send the report."},
        "search_change": {"name": "renamed"},
        "search_delete": {},
    }  # fmt: skip


PYTHON_FILE = "def hello() -> str:\n    '''Says something.'''\n    return ''\n"
TRIED = "01939b0a-0000-7000-8000-000000000002"
MESSAGE = {
    "token": "01939b0a-0000-7000-8000-000000000001",
    "text": "Which?",
    "model": MODEL,
    "max_tokens": "100",
    "steps": "3",
}
MODEL_TERMS = {
    "model": "script",
    "operation": "chat",
    "default_output_tokens": "512",
    "unpriced": "count",
    "caller_tools": "refuse",
    **REASON,
}


def configuration(things: Things) -> dict[str, Any]:
    """A file that changes nothing: what each section may change takes permissions and scopes of its own."""
    return {"format": 1, "tenant": str(things.tenant.slug), "agents": [{"name": "spare"}]}


def _planned(things: Things) -> Callable[[], dict[str, Any]]:
    def body() -> dict[str, Any]:
        plan = services.plan_configuration(read_document(configuration(things)), by=things.robot.by)
        return {"document": configuration(things), "digest": plan.digest}

    return body


ENVELOPE = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}}
CALL = ENVELOPE | {"arguments": {"text": "x"}}
MODEL_ANSWER = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "call-1", "name": "sample_tools_echo", "input": {"text": "x"}}],
}
ASKED = ENVELOPE | {"arguments": {"messages": [{"role": "user", "segments": [{"type": "text", "text": "x"}]}]}}
PLAN = ENVELOPE | {"plan": {"steps": [{"id": "one", "tool": ECHO, "arguments": {"text": "x"}}]}}

RUN = ASKED | {"model": MODEL}


def bodies(things: Things) -> dict[str, Any]:
    """For the API, by route and method; a function where it takes work to know."""
    agent = things.caller.agent.wire_id
    return {
        # Tools.
        "POST api_tools": manifest("raises"),
        "POST api_preflight": CALL,
        "POST api_invoke": CALL,
        "POST api_preflights": ENVELOPE | {"calls": [{"tool": "sample.tools.echo", "arguments": {"text": "x"}}]},
        "POST api_proposals": ENVELOPE | {"name": "sample.tools.echo", "call_id": "call-1", "arguments": '{"text": "x"}'},
        "POST api_dispatch": ENVELOPE | {"response": MODEL_ANSWER},
        "POST api_explain": {},
        "POST api_tool_enable": REASON,
        "POST api_tool_pause": REASON,
        "POST api_tool_deprecate": {"sunset_on": LATER, **REASON},
        "POST api_tool_share": REASON,
        "POST api_tool_unshare": REASON,
        "POST api_version_stage": {"tenants": [things.tenant.slug], **REASON},
        "POST api_version_yank": REASON,
        "POST api_version_dependencies_retry": {},
        "POST api_installations": {"tool": OFFERED, "publisher": PUBLISHER, **REASON},
        "PATCH api_installation": {"pin": "^1", **REASON},
        "POST api_installation_pause": REASON,
        "POST api_installation_resume": REASON,
        "POST api_installation_remove": REASON,
        "POST api_model_chat": ASKED,
        "POST api_model_embed": ENVELOPE | {"arguments": {"items": ["x"]}},
        "POST api_model_rerank": ENVELOPE | {"arguments": {"query": "x", "candidates": ["x"]}},
        "POST api_model_preflight": ASKED,
        "POST served_chat_completions": {"model": MODEL, "messages": [{"role": "user", "content": "x"}]},
        "POST served_messages": {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
        "POST served_message_count": {"model": MODEL, "messages": [{"role": "user", "content": "x"}]},
        "POST served_responses": {"model": MODEL, "input": "x"},
        **{
            f"POST served_content{verb}{version}": build_contents("x")
            for verb in ("", "_stream", "_count")
            for version in ("", "_v1")
        },
        **{f"POST served_content_vector{version}": {"content": {"parts": [{"text": "x"}]}} for version in ("", "_v1")},
        **{f"POST served_content_vectors{version}": build_texts("x") for version in ("", "_v1")},
        "POST served_embeddings": {"model": f"model.{PROVIDER}.vectors", "input": "x"},
        "POST served_rerank": {"model": f"model.{PROVIDER}.ranker", "query": "x", "documents": ["x"]},
        "POST api_model_providers": {"name": "other", "kind": "scripted", **REASON},
        "PATCH api_model_provider": {"settings": {"retries": 1}, **REASON},
        "POST api_model_provider_pause": REASON,
        "POST api_model_provider_enable": REASON,
        "POST api_model_provider_remove": REASON,
        "PUT api_model_prices": {"prices": [], **REASON},
        "POST api_connected_models": {"alias": "other", "model": "script", **REASON},
        "PATCH api_connected_model": {"window_tokens": 8192, **REASON},
        "POST api_connected_model_remove": REASON,
        "PUT api_model_prefix": {"text": "Be careful.", **REASON},
        "PUT api_secret": {"value": "not shown anywhere"},
        "DELETE api_secret": None,
        "POST api_server_accounts": {"server": f"https://{things.word}.example.org/mcp"},
        "POST api_server_account_connect": {},
        "PUT api_server_account_agents": {"agents": []},
        "POST api_server_account_end": {},
        "POST api_server_account_revoke": {},
        "POST api_import_document": {
            "document": base64.b64encode(write_document("another")).decode(), "group": "acme.another",
        },
        "POST api_import_remote": {"url": URL},
        "POST api_import_package": {"package": "mcp-server-time"},
        "POST api_import_choose": {"names": ["getPrice"]},
        "PUT api_import_draft": {"document": things.also["draft"]},
        "DELETE api_import_draft": None,
        "POST api_import_submit": {},
        "DELETE api_import": None,
        "POST api_capsules": capsule(shouting(name="another")).data,
        "POST api_publisher_keys": {"name": "another", "public_key": public_pem_of(ANOTHER)},
        "POST api_publisher_key_revoke": REASON,
        "PUT api_publishing": {"signatures_required": False},
        "PUT api_file": {"any": "bytes"},
        "DELETE api_file": None,
        "DELETE api_artifact": None,
        "DELETE api_invocation": None,
        "POST api_chains": PLAN,
        "POST api_chain_preflight": PLAN,
        "DELETE api_chain": None,
        "POST api_runs": RUN,
        "DELETE api_run": None,
        # What agents are given.
        "PUT api_connection_rule": {"days": 7},
        "POST api_consents": {"tool": WRITE, "purpose": "to test"},
        "POST api_grants": {"agent": agent, "tools": "other.*", **REASON},
        "POST api_grant_extend": {"expires_at": f"{LATER}T12:00:00Z", **REASON},
        "POST api_grant_revoke": REASON,
        "POST api_delegations": {
            "grant": things.also["grant"].wire_id, "to_agent": things.robot.agent.wire_id, "purpose": "to test",
            "expires_at": "2899-01-01T12:00:00Z",
        },
        "DELETE api_delegation": None,
        "POST api_grant_requests": {"tools": "more.*", "purpose": "to test"},
        # Rules and limits.
        "POST api_halts": {"reach": "agent", "target": agent, **REASON},
        "POST api_halt_lift": REASON,
        "POST api_budgets": {
            "scope": "agent", "agent": agent, "dimension": "calls", "amount": 5, "window_s": 3600, **REASON,
        },
        "POST api_budget_raise": {"by_amount": 5, **REASON},
        "POST api_budget_end": REASON,
        "POST api_policies": {"document": POLICY},
        "POST api_policy_check": {"document": POLICY},
        "PUT api_policy": {"document": POLICY},
        "POST api_policy_simulate": {"calls": 10},
        "POST api_policy_discard": REASON,
        # All of it at once.
        "POST api_configuration_plan": {"document": configuration(things)},
        "POST api_configuration_apply": _planned(things),
        # Agents.
        "POST api_agents": {"name": "another"},
        "POST api_agent_disable": REASON,
        "POST api_agent_enable": REASON,
        "POST api_keys": {"scopes": []},
        "POST api_key_rotate": {"overlap_s": 60},
        "POST api_key_revoke": REASON,
        "POST api_clients": {"name": "another", "redirect_uris": ["https://new.example.org/callback"]},
        "POST api_client_remove": REASON,
        # People.
        "POST api_invocation_replays": REASON,
        "POST api_replays": {
            "what": "decisions", "since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", **REASON,
        },
        "DELETE api_replay": None,
        "PUT api_member_roles": {"roles": ["auditor"], **REASON},
        "POST api_member_permission": {"permission": "evidence.view"},
        "POST api_member_permission_take": {"permission": "halts.throw"},
        "POST api_member_exception": {"permission": "tools.operate", "tool": ECHO},
        "POST api_member_exception_take": {"permission": "agents.manage", "agent": agent},
        "POST api_member_remove": REASON,
        "POST api_invitations": {"username": "nora", "roles": ["auditor"]},
        "POST api_invitation_again": {},
        "POST api_invitation_withdraw": REASON,
        # Identity providers and channels.
        "POST api_issuers": {"issuer": "https://new.example.org", "audience": "new", "jwks": JWKS},
        "PUT api_issuer": {"audience": "changed", "jwks": JWKS},
        "POST api_issuer_distrust": REASON,
        "POST api_issuer_subjects": {"subject": "another", "agent": things.robot.agent.wire_id, "scopes": []},
        "POST api_issuer_subject_remove": {},
        "POST api_issuer_rule_set": {"agent": things.robot.agent.wire_id, "scopes": ["tools:read"], "token_minutes": 5},
        "POST api_issuer_rule_end": {},
        "POST api_channels": {"channel": "email", "target": "new@example.org", "events": ["consent.requested"]},
        "PATCH api_channel": {"events": ["halt.thrown"]},
        "POST api_channel_end": REASON,
        "POST api_delivery_again": {},
        "POST api_callbacks": {"name": "another", "url": "https://new.example.org/hook"},
        "POST api_callback_rotate": {},
        "POST api_verifications": {},
        "POST api_exports": {"format": "jsonl"},
        "DELETE api_export": None,
        "POST api_erasures": REASON | {"user_id": "user-1"},
        "PUT api_retention": {"days": {"logs": 30}},
        "POST api_sinks": {"name": "another", "channel": "webhook", "url": "https://new.example.org/events"},
        "POST api_sink_pause": REASON,
        "POST api_sink_resume": {},
        "POST api_sink_test": {},
        "POST api_sink_rotate": {},
        "POST api_sink_end": REASON,
        "POST api_callback_disable": REASON,
        "POST api_callback_again": {},
    }  # fmt: skip


def _find_talker(things: Things) -> str:
    """The agent of the playground, as which whoever may use that tries tools."""
    return str(things.named["talker"])
