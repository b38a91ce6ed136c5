"""Addresses of issuers."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.issuers import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="issuers",
        label=gettext_lazy("Identity providers"),
        icon="fingerprint",
        address="issuers",
        permission="issuers.manage",
        job=Job.PEOPLE,
        order=20,
    ),
]

PAGES = [
    path("issuers", pages.issuers, name="issuers"),
    path("issuers/new", pages.issuer_new, name="issuer_new"),
    path("issuers/<iss:issuer_id>", pages.issuer, name="issuer"),
    path("issuers/<iss:issuer_id>/edit", pages.issuer_edit, name="issuer_edit"),
    path("issuers/<iss:issuer_id>/distrust", pages.issuer_distrust, name="issuer_distrust"),
    path("issuers/<iss:issuer_id>/assertions", pages.issuer_rule_set, name="issuer_rule_set"),
    path("issuers/<iss:issuer_id>/assertions/end", pages.issuer_rule_end, name="issuer_rule_end"),
    path("issuers/<iss:issuer_id>/subjects", pages.issuer_subject_add, name="issuer_subject_add"),
    path("issuers/<iss:issuer_id>/subjects/remove", pages.issuer_subject_remove, name="issuer_subject_remove"),
]

API = [
    path("issuers", api.IssuerListView.as_view(), name="api_issuers"),
    path("issuers/<iss:issuer_id>", api.IssuerView.as_view(), name="api_issuer"),
    path("issuers/<iss:issuer_id>/distrust", api.IssuerDistrustView.as_view(), name="api_issuer_distrust"),
    path("issuers/<iss:issuer_id>/assertions", api.IssuerAssertionRuleView.as_view(), name="api_issuer_rule_set"),
    path(
        "issuers/<iss:issuer_id>/assertions/end", api.IssuerAssertionRuleEndView.as_view(), name="api_issuer_rule_end"
    ),
    path("issuers/<iss:issuer_id>/subjects", api.IssuerSubjectListView.as_view(), name="api_issuer_subjects"),
    path(
        "issuers/<iss:issuer_id>/subjects/<idn:identity_id>/remove",
        api.IssuerSubjectRemoveView.as_view(),
        name="api_issuer_subject_remove",
    ),
]

ACCESS = """
[console]

GET   issuers                  issuers.manage         HO----
GET   issuer_new               issuers.manage         HO----
POST  issuer_new               issuers.manage         HO----
GET   issuer                   issuers.manage         HO----
GET   issuer_edit              issuers.manage         HO----
POST  issuer_edit              issuers.manage         HO----
POST  issuer_distrust          issuers.manage         HO----
POST  issuer_rule_set          issuers.manage         HO----
POST  issuer_rule_end          issuers.manage         HO----
POST  issuer_subject_add       issuers.manage         HO----
POST  issuer_subject_remove    issuers.manage         HO----

[api]

GET    api_issuers              issuers:manage
POST   api_issuers              issuers:manage
GET    api_issuer               issuers:manage
PUT    api_issuer               issuers:manage
POST   api_issuer_distrust      issuers:manage
POST   api_issuer_rule_set      issuers:manage
POST   api_issuer_rule_end      issuers:manage
GET    api_issuer_subjects      issuers:manage
POST   api_issuer_subjects      issuers:manage
POST   api_issuer_subject_remove issuers:manage
"""
