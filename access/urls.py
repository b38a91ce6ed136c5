"""Addresses of signing out and the tenant one looks at."""

from django.urls import path

from access import pages

PAGES = [
    path("sign-out", pages.sign_out, name="sign_out"),
    path("account/sign-out", pages.sign_out, name="account_logout"),
    path("tenant", pages.switch_tenant, name="switch_tenant"),
]
