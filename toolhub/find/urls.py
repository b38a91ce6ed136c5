"""Address of finding."""

from django.urls import path

from toolhub.find import pages

PAGES = [path("find", pages.find, name="find")]

ACCESS = """
[console]

GET   find                     invocations.view       HOPRAD
"""
