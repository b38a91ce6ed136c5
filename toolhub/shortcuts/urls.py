"""Address of shortcuts."""

from django.urls import path

from toolhub.shortcuts import pages

PAGES = [path("shortcuts", pages.shortcuts, name="shortcuts")]

ACCESS = """
[console]

GET   shortcuts                invocations.view       HOPRAD
POST  shortcuts                invocations.view       HOPRAD
"""
