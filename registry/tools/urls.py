"""Addresses of tools."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.tools import api, pages

NAVIGATION = [
    NavigationEntry(
        key="tools",
        label=gettext_lazy("Catalogue"),
        icon="package",
        address="tools",
        permission="tools.view",
        job=Job.CATALOGUE,
        order=10,
    ),
]

PAGES = [
    path("tools", pages.tools, name="tools"),
    path("tool-matches", pages.tool_matches, name="tool_matches"),
    path("tools/<str:name>", pages.tool, name="tool"),
    path("tools/<str:name>/versions", pages.tool_versions, name="tool_versions"),
    path("tools/<str:name>/manifest", pages.tool_manifest, name="tool_manifest"),
    path("tools/<str:name>/activity", pages.tool_activity, name="tool_activity"),
    path("tools/<str:name>/enable", pages.tool_enable, name="tool_enable"),
    path("tools/<str:name>/pause", pages.tool_pause, name="tool_pause"),
    path("tools/<str:name>/deprecate", pages.tool_deprecate, name="tool_deprecate"),
    path("tools/<str:name>/share", pages.tool_share, name="tool_share"),
]

API = [
    path("tools", api.ToolListView.as_view(), name="api_tools"),
    path("tools/<str:tool_id>", api.ToolView.as_view(), name="api_tool"),
    path("manifest-schema", api.manifest_schema_view, name="api_manifest_schema"),
]

ACCESS = """
[console]

GET   tools                    tools.view             HOPRAD
GET   tool_matches             tools.view             HOPRAD
GET   tool                     tools.view             HOPRAD
GET   tool_versions            tools.view             HOPRAD
GET   tool_manifest            tools.view             HOPRAD
GET   tool_activity            tools.view             HOPRAD
POST  tool_enable              tools.operate          HOP---
POST  tool_pause               tools.operate          HOP---
POST  tool_deprecate           tools.operate          HOP---
POST  tool_share               tools.operate          HOP---

[api]

GET    api_tools                tools:read
POST   api_tools                tools:register
GET    api_tool                 tools:read
"""
