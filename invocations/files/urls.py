"""Addresses of files."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.files import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="files",
        label=gettext_lazy("Files"),
        icon="archive",
        address="files",
        permission="files.manage",
        job=Job.CATALOGUE,
        order=50,
    ),
]

PAGES = [
    path("files", pages.file_list, name="files"),
    path("files/take/<path:path>", pages.file_take, name="file_take"),
    path("files/remove/<path:path>", pages.file_remove, name="file_remove"),
]

API = [
    path("files", api.FileListView.as_view(), name="api_files"),
    path("files/<path:path>", api.FileView.as_view(), name="api_file"),
]

ACCESS = """
[console]

GET   files                    files.manage           HOP---
POST  files                    files.manage           HOP---
POST  file_take                files.manage           HOP---
POST  file_remove              files.manage           HOP---

[api]

GET    api_files                files:manage
GET    api_file                 files:manage
PUT    api_file                 files:manage
DELETE api_file                 files:manage
"""
