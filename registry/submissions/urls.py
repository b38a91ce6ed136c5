"""Addresses of submissions."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.submissions import pages

NAVIGATION = [
    NavigationEntry(
        key="submissions",
        label=gettext_lazy("My submissions"),
        icon="inbox",
        address="submissions",
        permission="tools.submit",
        job=Job.BUILD,
        order=10,
    ),
]

PAGES = [
    path("submissions", pages.submissions, name="submissions"),
    path("submissions/new", pages.submission_new, name="submission_new"),
    path("submissions/new/capsule", pages.submission_capsule, name="submission_capsule"),
    path("submissions/new/python", pages.submission_python, name="submission_python"),
    path("submissions/tools/<str:name>", pages.submitted_tool, name="submitted_tool"),
]

ACCESS = """
[console]

GET   submissions              tools.submit           HOP--D
GET   submission_new           tools.submit           HOP--D
POST  submission_capsule       tools.submit           HOP--D
POST  submission_python        tools.submit           HOP--D
GET   submitted_tool           tools.submit           HOP--D
"""
