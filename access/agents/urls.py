"""Addresses of agents."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.agents import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="agents",
        label=gettext_lazy("Agents & keys"),
        icon="bot",
        address="agents",
        permission="agents.view",
        job=Job.AGENTS,
        order=10,
    ),
]

PAGES = [
    path("agents", pages.agents, name="agents"),
    path("agents/new", pages.agent_new, name="agent_new"),
    path("agents/<agt:agent_id>", pages.agent, name="agent"),
    path("agents/<agt:agent_id>/state", pages.agent_state, name="agent_state"),
    path("agents/<agt:agent_id>/keys/new", pages.key_new, name="key_new"),
    path("keys/<key:key_id>/rotate", pages.key_rotate, name="key_rotate"),
    path("keys/<key:key_id>/revoke", pages.key_revoke, name="key_revoke"),
]

API = [
    path("agents", api.AgentListView.as_view(), name="api_agents"),
    path("agents/<agt:agent_id>", api.AgentView.as_view(), name="api_agent"),
    path("agents/<agt:agent_id>/disable", api.AgentDisableView.as_view(), name="api_agent_disable"),
    path("agents/<agt:agent_id>/enable", api.AgentEnableView.as_view(), name="api_agent_enable"),
    path("agents/<agt:agent_id>/keys", api.KeyListView.as_view(), name="api_keys"),
    path("keys/<key:key_id>/rotate", api.KeyRotateView.as_view(), name="api_key_rotate"),
    path("keys/<key:key_id>/revoke", api.KeyRevokeView.as_view(), name="api_key_revoke"),
]

ACCESS = """
[console]

GET   agents                   agents.view            HOPRA-
GET   agent_new                agents.manage          HOP---
POST  agent_new                agents.manage          HOP---
GET   agent                    agents.view            HOPRA-
POST  agent_state              agents.manage          HOP---
GET   key_new                  agents.manage          HOP---
POST  key_new                  agents.manage          HOP---
POST  key_rotate               agents.manage          HOP---
POST  key_revoke               agents.manage          HOP---

[api]

GET    api_agents               agents:manage
POST   api_agents               agents:manage
GET    api_agent                agents:manage
POST   api_agent_disable        agents:manage
POST   api_agent_enable         agents:manage
GET    api_keys                 agents:manage
POST   api_keys                 agents:manage
POST   api_key_rotate           agents:manage
POST   api_key_revoke           agents:manage
"""
