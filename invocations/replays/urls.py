"""Addresses of replays."""

from django.urls import path

from invocations.replays import api, pages

PAGES = [
    path("invocations/<inv:invocation_id>/replay", pages.replay_new, name="replay_new"),
    path("replays", pages.replay_list, name="replays"),
    path("replays/new", pages.replay_period, name="replay_period"),
    path("replays/<rpl:replay_id>", pages.replay_detail, name="replay"),
    path("replays/<rpl:replay_id>/cancel", pages.replay_cancel, name="replay_cancel"),
    path("replays/<rpl:replay_id>/calls/<inv:invocation_id>", pages.replay_call, name="replay_call"),
    path("replays/<rpl:replay_id>/calls/<inv:invocation_id>/values", pages.replay_values, name="replay_values"),
]

API = [
    path(
        "invocations/<inv:invocation_id>/replays",
        api.InvocationReplaysView.as_view(),
        name="api_invocation_replays",
    ),
    path(
        "invocations/<inv:invocation_id>/reconstruction",
        api.InvocationReconstructionView.as_view(),
        name="api_invocation_reconstruction",
    ),
    path("replays", api.ReplaysView.as_view(), name="api_replays"),
    path("replays/<rpl:replay_id>", api.ReplayView.as_view(), name="api_replay"),
    path("replays/<rpl:replay_id>/calls", api.ReplayCallsView.as_view(), name="api_replay_calls"),
]

ACCESS = """
[console]

GET   replays                  invocations.replay     HOP-A-
GET   replay_new               invocations.replay     HOP-A-
POST  replay_new               invocations.replay     HOP-A-
GET   replay_period            invocations.replay     HOP-A-
POST  replay_period            invocations.replay     HOP-A-
GET   replay                   invocations.replay     HOP-A-
POST  replay_cancel            invocations.replay     HOP-A-
GET   replay_call              invocations.replay     HOP-A-
POST  replay_values            evidence.reveal        ----A-

[api]

GET    api_invocation_replays   -
POST   api_invocation_replays   -
GET    api_invocation_reconstruction  -
GET    api_replays              -
POST   api_replays              -
GET    api_replay               -
DELETE api_replay               -
GET    api_replay_calls         -

[people]

GET    api_invocation_replays      invocations.replay  HOP-A-
POST   api_invocation_replays      invocations.replay  HOP-A-
GET    api_invocation_reconstruction  evidence.view   HOP-A-
GET    api_replays                 invocations.replay  HOP-A-
POST   api_replays                 invocations.replay  HOP-A-
GET    api_replay                  invocations.replay  HOP-A-
DELETE api_replay                  invocations.replay  HOP-A-
GET    api_replay_calls            invocations.replay  HOP-A-
"""
