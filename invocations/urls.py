"""Console addresses of calls."""

from django.urls import path

from invocations import (
    approval_views,
    explain_views,
    file_views,
    resolving_views,
    sandbox_views,
    service_level_views,
    views,
)
from invocations.artifacts import views as artifact_views
from invocations.chains import views as chain_views
from invocations.replaying import views as replay_views

urlpatterns = [
    path("explain", explain_views.explain, name="explain"),
    path("explain/request", explain_views.explain_request, name="explain_request"),
    path("approvals", approval_views.approvals, name="approvals"),
    path("consents", approval_views.consent_list, name="consents"),
    path("consents/revoke", approval_views.consents_revoke, name="consents_revoke"),
    path("consents/<cns:consent_id>", approval_views.consent, name="consent"),
    path("consents/<cns:consent_id>/decision", approval_views.consent_decide, name="consent_decide"),
    path("consents/<cns:consent_id>/try", approval_views.consent_try, name="consent_try"),
    path("sandboxes", sandbox_views.sandboxes, name="sandboxes"),
    path("service-levels", service_level_views.service_levels, name="service_levels"),
    path("artifacts/<art:artifact_id>", artifact_views.artifact, name="artifact"),
    path("artifacts/<art:artifact_id>/remove", artifact_views.artifact_remove, name="artifact_remove"),
    path("files", file_views.file_list, name="files"),
    path("files/take/<path:path>", file_views.file_take, name="file_take"),
    path("files/remove/<path:path>", file_views.file_remove, name="file_remove"),
    path("chains", chain_views.chains, name="chains"),
    path("chains/<chn:chain_id>", chain_views.chain, name="chain"),
    path("chains/<chn:chain_id>/cancel", chain_views.chain_cancel, name="chain_cancel"),
    path("invocations", views.invocations, name="invocations"),
    path("invocations/<inv:invocation_id>", views.invocation, name="invocation"),
    path("invocations/<inv:invocation_id>/cancel", views.cancel, name="invocation_cancel"),
    path("invocations/<inv:invocation_id>/resolve", resolving_views.resolve, name="invocation_resolve"),
    path("invocations/<inv:invocation_id>/replay", replay_views.replay_new, name="replay_new"),
    path("replays", replay_views.replays, name="replays"),
    path("replays/new", replay_views.replay_period, name="replay_period"),
    path("replays/<rpl:replay_id>", replay_views.replay, name="replay"),
    path("replays/<rpl:replay_id>/cancel", replay_views.replay_cancel, name="replay_cancel"),
    path("replays/<rpl:replay_id>/calls/<inv:invocation_id>", replay_views.replay_call, name="replay_call"),
    path("replays/<rpl:replay_id>/calls/<inv:invocation_id>/values", replay_views.replay_values, name="replay_values"),
    path("invocations/<inv:invocation_id>/values", views.values, name="invocation_values"),
]
