"""Addresses of versions."""

from django.urls import path

from registry.versions import api, pages

PAGES = [
    path("versions/<tvn:version_id>", pages.version, name="version"),
    path("versions/<tvn:version_id>/stage", pages.version_stage, name="version_stage"),
    path("versions/<tvn:version_id>/yank", pages.version_yank, name="version_yank"),
    path("versions/<tvn:version_id>/trust", pages.version_trust, name="version_trust"),
    path(
        "versions/<tvn:version_id>/dependencies/retry",
        pages.version_dependencies_retry,
        name="version_dependencies_retry",
    ),
]

API = [
    path("tools/<str:tool_id>/versions", api.VersionListView.as_view(), name="api_tool_versions"),
    path("tools/<str:tool_id>/enable", api.ToolEnableView.as_view(), name="api_tool_enable"),
    path("tools/<str:tool_id>/pause", api.ToolPauseView.as_view(), name="api_tool_pause"),
    path("tools/<str:tool_id>/deprecate", api.ToolDeprecateView.as_view(), name="api_tool_deprecate"),
    path("tools/<str:tool_id>/share", api.ToolShareView.as_view(), name="api_tool_share"),
    path("tools/<str:tool_id>/unshare", api.ToolUnshareView.as_view(), name="api_tool_unshare"),
    path("tools/<str:tool_id>/versions/<str:version>", api.VersionView.as_view(), name="api_tool_version"),
    path(
        "tools/<str:tool_id>/versions/<str:version>/stage",
        api.VersionStageView.as_view(),
        name="api_version_stage",
    ),
    path(
        "tools/<str:tool_id>/versions/<str:version>/yank",
        api.VersionYankView.as_view(),
        name="api_version_yank",
    ),
    path(
        "tools/<str:tool_id>/versions/<str:version>/dependencies/retry",
        api.VersionDependenciesView.as_view(),
        name="api_version_dependencies_retry",
    ),
]

ACCESS = """
[console]

GET   version                  tools.view             HOPRAD
POST  version_stage            tools.operate          HOP---
POST  version_yank             tools.operate          HOP---
POST  version_trust            tools.trust            HO----
POST  version_dependencies_retry tools.operate        HOP---

[api]

GET    api_tool_versions        tools:read
GET    api_tool_version         tools:register
POST   api_tool_enable          tools:operate
POST   api_tool_pause           tools:operate
POST   api_tool_deprecate       tools:operate
POST   api_tool_share           tools:operate
POST   api_tool_unshare         tools:operate
POST   api_version_stage        tools:operate
POST   api_version_yank         tools:operate
POST   api_version_dependencies_retry tools:operate
"""
