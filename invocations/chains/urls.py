"""Addresses of chains."""

from django.urls import path

from invocations.chains import api, pages

PAGES = [
    path("chains", pages.chain_list, name="chains"),
    path("chains/<chn:chain_id>", pages.chain_detail, name="chain"),
    path("chains/<chn:chain_id>/cancel", pages.chain_cancel, name="chain_cancel"),
]

API = [
    path("chains", api.ChainListView.as_view(), name="api_chains"),
    path("chains/preflight", api.ChainPreflightView.as_view(), name="api_chain_preflight"),
    path("chains/<chn:chain_id>", api.ChainView.as_view(), name="api_chain"),
]

ACCESS = """
[console]

GET   chains                   invocations.view       HOPRAD
GET   chain                    invocations.view       HOPRAD
POST  chain_cancel             invocations.cancel     HOP---

[api]

POST   api_chains               invocations:create
POST   api_chain_preflight      invocations:create
GET    api_chain                invocations:read
DELETE api_chain                invocations:create
"""
