"""Addresses of agent runs."""

from django.urls import path

from invocations.agent_runs import api, pages

PAGES = [
    path("runs", pages.run_list, name="agent_runs"),
    path("runs/<run:run_id>", pages.run_detail, name="agent_run"),
    path("runs/<run:run_id>/cancel", pages.run_cancel, name="agent_run_cancel"),
    path("runs/<run:run_id>/values", pages.run_values, name="agent_run_values"),
]

API = [
    path("runs", api.AgentRunListView.as_view(), name="api_runs"),
    path("runs/<run:run_id>", api.AgentRunView.as_view(), name="api_run"),
    path("runs/<run:run_id>/events", api.AgentRunEventsView.as_view(), name="api_run_events"),
]

ACCESS = """
[console]

GET   agent_runs               invocations.view       HOPRAD
GET   agent_run                invocations.view       HOPRAD
POST  agent_run_cancel         invocations.cancel     HOP---
POST  agent_run_values         evidence.reveal        ----A-

[api]

POST   api_runs                 invocations:create
GET    api_run                  invocations:read
DELETE api_run                  invocations:create
GET    api_run_events           invocations:read
"""
