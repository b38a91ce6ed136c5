"""Tenancy: does code of a request leave its tenant only where that was thought about?"""

from __future__ import annotations

import ast

from tests.guards.test_architecture import PRODUCT, name_of, parsed

STEPS_OVER = ("hub_wide", "fetch_prepared_by_scope")
# Where the second wall is stepped over, and why. Each filters by itself.
HUB_WIDE = {
    "bench/role_calls.py:ask": "what it takes to be asked as the hub is what is measured",
    "invocations/sandbox_hosts/pages.py:_names_of_tenants": "names beside boxes, for who manages the hub",
    "invocations/replays/version_impacts.py:_count_other_tenants": "how many tenants have installed what one shares: a number",
    "invocations/metrics/hub_gauges.py:_observed": "figures of the whole hub, for its operators",
    "invocations/service_levels/unmapped_errors.py:note_unmapped": "what goes wrong in the hub is of no tenant",
    "evidence/keys/check_values.py:key_fits": "master keys are of the whole hub, and so is what they have wrapped",
    "evidence/log/api.py:_anchor_of": "that a tenant's own checkpoint is in the global log",
    "evidence/log/api.py:global_checkpoint": "everybody may have it: a size and a hash, signed",
    "evidence/log/api.py:global_keys": "public keys",
    "evidence/log/api.py:global_tile": "everybody may have it: hashes",
    "evidence/integrity/alarms.py:shared_alarms": "the logs that all tenants share: what is wrong, never a leaf",
    "evidence/integrity/alarms.py:verification_for": "of a log that all tenants share: codes and places, never a leaf",
    "evidence/integrity/services.py:ask_verification": "a log that all tenants share, by who manages the hub",
    "access/display/services.py:find_display": "how a person reads times, in whichever tenant",
    "access/display/services.py:set_display": "the same, chosen",
    "access/authentication/bearer.py:find_valid_key": "whose key it is, is what is asked",
    "access/authentication/bearer.py:_find_with_more": "the same, with what is asked for its tenant alone",
    "access/authentication/bearer.py:resolve_connection_principal": "whose token it is, is what is asked",
    "access/connections/rights.py:find_ended_connections": "of all tenants whose programs are answered at this moment",
    "access/authentication/held_credentials.py:find_ended_credentials": "of all tenants whose streams are open in this process",
    "invocations/mcp/list_changes.py:read_changes": "in which tenants something happened: their ids and the kinds of facts",
    "access/oauth/api.py:_issue_for_connection": "which tenant a code or a token is for, is what is asked",
    "access/oauth/api.py:revoke_token": "whose token it is, is what is asked",
    "access/oauth/api.py:register": "programs belong to no tenant",
    "access/oauth/clients.py:find_entered_client": "which tenant knows a program, is what is asked",
    "access/oauth/clients.py:authenticate_entered_client": "which tenant knows a program, is what is asked",
    "access/oauth/client_documents.py:fetch": "programs belong to no tenant",
    "access/authentication/bearer.py:note_use": "before the request acts for the key's tenant",
    "access/oauth/tokens.py:_of_issuer": "which tenant a token is for, is what is asked",
    "access/oauth/tokens.py:_of_hub": "which key a token was made for, is what is asked",
    "access/issuers/services.py:_check": "a token must lead to one tenant",
    "access/issuers/services.py:find_mcp_issuers": "nobody is signed in where a client asks who signs people in",
    "access/members/services.py:find_tenant_ids": "whether somebody is in another tenant, is what is asked",
    "access/members/invitations.py:accept_invitation": "nobody is signed in yet",
    "access/middleware.py:tenants_for": "which tenants a person may choose from",
    "access/middleware.py:choose_tenant": "the tenant is about to change",
    "access/members/pages.py:_tenants_page": "the owners of the hub see all tenants, and each other",
    "access/members/pages.py:hub_owners": "who owns the hub may be of any tenant",
    "access/members/pages.py:tenant_new": "another tenant, by an owner of the hub",
    "access/halts/services.py:list_halts_in_force": "which streams of a process end, whosever they are",
    "invocations/stopped_streams.py:_find_publishers": "a publisher stops its tool for every tenant",
    "access/halts/services.py:_scope": "the hub's own kill switch, by an owner of the hub",
    "access/policies/services.py:_scope": "the hub's own policy, by an owner of the hub",
    "registry/installations/catalogue.py:publisher_slugs": "short names of who publishes what may be installed",
    "registry/installations/catalogue.py:_halted_tools": "which tools may not be installed, since their publisher stopped them",
    "registry/installations/catalogue.py:shared_tools": "the id of a publisher by its short name",
    "registry/installations/services.py:install_tool": "the publisher's tool is locked while it is installed",
    "registry/tools/lifecycle.py:is_staged_apart": "who has another version of the tenant's own tool",
    "registry/tools/lifecycle.py:stage_version": "moves who installed the tenant's own tool",
    "registry/installations/resolution.py:follow_current": "moves who installed the tenant's own tool",
    "registry/installations/resolution.py:settle_pins": "moves who installed the tenant's own tool",
    "registry/installations/resolution.py:leave_version": "moves who installed the tenant's own tool",
    "registry/versions/pages.py:installed_in": "a publisher sees who installed what it shares",
    "toolhub/page_events/feeds.py:look": "whether sessions have ended, of people who may be in other tenants too",
    "toolhub/page_events/sessions.py:find_principal": "in which tenant a session acts, is what is asked",
    "toolhub/configuration/state.py:_installations": "whom a tool that is installed here belongs to",
}


def test_every_step_over_the_second_wall_has_a_reason() -> None:
    found = set()
    for path in PRODUCT:
        text = path.read_text()
        if name_of(path) == "kernel/database/tenancy.py" or not any(name in text for name in STEPS_OVER):
            continue
        nodes = list(ast.walk(parsed(path)))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        for call in nodes:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in STEPS_OVER:
                around = [
                    each
                    for each in functions
                    if min([each.lineno, *(mark.lineno for mark in each.decorator_list)]) <= call.lineno
                    and call.lineno <= (each.end_lineno or 0)
                ]
                inner = max(around, key=lambda each: each.lineno)
                found.add(f"{name_of(path)}:{inner.name}")

    assert found == set(HUB_WIDE)
