"""Addresses of imports."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.imports import api, pages

NAVIGATION = [
    NavigationEntry(
        key="imports",
        label=gettext_lazy("Bring a tool"),
        icon="download",
        address="imports",
        permission="tools.submit",
        job=Job.BUILD,
        order=20,
    ),
]

PAGES = [
    path("bring", pages.imports, name="imports"),
    path("bring/document", pages.import_document, name="import_document"),
    path("bring/server", pages.import_remote, name="import_remote"),
    path("bring/package", pages.import_package, name="import_package"),
    path("bring/known", pages.known_sources, name="known_sources"),
    path("bring/known/take", pages.known_source_take, name="known_source_take"),
    path("bring/<imp:import_id>", pages.import_detail, name="import"),
    path("bring/<imp:import_id>/choose", pages.import_choose, name="import_choose"),
    path("bring/<imp:import_id>/submit", pages.import_submit, name="import_submit"),
    path("bring/<imp:import_id>/remove", pages.import_remove, name="import_remove"),
    path("bring/<imp:import_id>/drafts/<str:tool>", pages.import_draft, name="import_draft"),
    path("bring/<imp:import_id>/drafts/<str:tool>/remove", pages.import_draft_remove, name="import_draft_remove"),
    path("tools/<str:name>/next-version", pages.tool_next_version, name="tool_next_version"),
]

API = [
    path("imports", api.ImportListView.as_view(), name="api_imports"),
    path("imports/document", api.DocumentImportView.as_view(), name="api_import_document"),
    path("imports/remote", api.RemoteImportView.as_view(), name="api_import_remote"),
    path("imports/package", api.PackageImportView.as_view(), name="api_import_package"),
    path("imports/<imp:import_id>", api.ImportView.as_view(), name="api_import"),
    path("imports/<imp:import_id>/offers", api.ImportOfferListView.as_view(), name="api_import_offers"),
    path("imports/<imp:import_id>/choose", api.ImportChoiceView.as_view(), name="api_import_choose"),
    path("imports/<imp:import_id>/drafts/<str:tool>", api.ImportDraftView.as_view(), name="api_import_draft"),
    path("imports/<imp:import_id>/submit", api.ImportSubmissionView.as_view(), name="api_import_submit"),
]

ACCESS = """
[console]

GET   imports                  tools.submit           HOP--D
GET   import_document          tools.submit           HOP--D
POST  import_document          tools.submit           HOP--D
GET   import_remote            tools.submit           HOP--D
POST  import_remote            tools.submit           HOP--D
GET   import_package           tools.submit           HOP--D
POST  import_package           tools.submit           HOP--D
GET   known_sources            tools.submit           HOP--D
POST  known_source_take        tools.submit           HOP--D
POST  tool_next_version        tools.submit           HOP--D
GET   import                   tools.submit           HOP--D
POST  import_choose            tools.submit           HOP--D
POST  import_submit            tools.submit           HOP--D
GET   import_remove            tools.submit           HOP--D
POST  import_remove            tools.submit           HOP--D
GET   import_draft             tools.submit           HOP--D
POST  import_draft             tools.submit           HOP--D
POST  import_draft_remove      tools.submit           HOP--D

[api]

GET    api_imports             tools:register
POST   api_import_document     tools:register
POST   api_import_remote       tools:register
POST   api_import_package      tools:register
GET    api_import              tools:register
DELETE api_import              tools:register
GET    api_import_offers       tools:register
POST   api_import_choose       tools:register
GET    api_import_draft        tools:register
PUT    api_import_draft        tools:register
DELETE api_import_draft        tools:register
POST   api_import_submit       tools:register
"""
