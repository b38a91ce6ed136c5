"""Addresses of tool files."""

from django.urls import path

from invocations.tool_files import pages

PAGES = [
    path("tools/<str:name>/files", pages.tool_files_page, name="tool_files"),
    path("tools/<str:name>/files/<tlf:files_id>/empty", pages.tool_files_empty, name="tool_files_empty"),
]

ACCESS = """
[console]

GET   tool_files               files.manage           HOP---
POST  tool_files_empty         files.manage           HOP---
"""
