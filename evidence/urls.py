"""Addresses of facts."""

from django.urls import path

from evidence import pages

PAGES = [
    path("evidence/<fct:fact_id>", pages.fact, name="fact"),
    path("evidence/<fct:fact_id>/proof", pages.fact_proof, name="fact_proof"),
]

ACCESS = """
[console]

GET   fact                     evidence.view          HOP-A-
GET   fact_proof               evidence.view          HOP-A-
"""
