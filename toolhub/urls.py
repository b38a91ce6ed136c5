"""Which address leads where?"""

from __future__ import annotations

from django.urls import include, path, register_converter

from access import agents_api, channels_api, delegations_api, facts_api, grants_api, issuers_api, members_api, oauth
from access import api as access_api
from access.budgets import api as budgets_api
from access.converters import Base36Converter, UserIdConverter
from access.policies import api as policies_api
from evidence import erasure_api
from evidence.checking import api as checking_api
from evidence.events import api as events_api
from evidence.exports import api as exports_api
from evidence.log import api as log_api
from invocations import api as invocations_api
from invocations import dispatching_api, explain_api, files_api, following_api, preflight_api, proposals_api
from invocations.artifacts import api as artifacts_api
from invocations.callbacks import api as callbacks_api
from invocations.chains import api as chains_api
from invocations.replaying import api as replays_api
from registry import api as registry_api
from registry import consents_api, exceptions_api, halts_api, installations_api, lifecycle_api, secrets_api
from registry.publishing import api as publishing_api
from toolhub import catalogue, console, health, metrics, openapi, sdk
from toolhub.configuration import api as configuration_api
from toolhub.kernel.ids import converters

for _name, _converter in converters().items():
    register_converter(_converter, _name)
register_converter(UserIdConverter, "usr")
register_converter(Base36Converter, "base36")

handler400 = "toolhub.kernel.handlers.bad_request"
handler403 = "toolhub.kernel.handlers.forbidden"
handler404 = "toolhub.kernel.handlers.not_found"
handler429 = "toolhub.kernel.handlers.too_many"
handler500 = "toolhub.kernel.handlers.server_error"

api = [
    path("tools/<str:tool_id>/invoke", invocations_api.ToolInvokeView.as_view(), name="api_invoke"),
    path("tools", registry_api.ToolListView.as_view(), name="api_tools"),
    path("tools/<str:tool_id>", registry_api.ToolView.as_view(), name="api_tool"),
    path("tools/<str:tool_id>/preflight", preflight_api.ToolPreflightView.as_view(), name="api_preflight"),
    path("preflight", preflight_api.PreflightsView.as_view(), name="api_preflights"),
    path("dispatch", dispatching_api.DispatchView.as_view(), name="api_dispatch"),
    path("proposals", proposals_api.ProposalView.as_view(), name="api_proposals"),
    path("tools/<str:tool_id>/explain", explain_api.ToolExplainView.as_view(), name="api_explain"),
    path("tools/<str:tool_id>/available", explain_api.ToolAvailableView.as_view(), name="api_available"),
    path("tools/<str:tool_id>/versions", lifecycle_api.VersionListView.as_view(), name="api_tool_versions"),
    path("tools/<str:tool_id>/enable", lifecycle_api.ToolEnableView.as_view(), name="api_tool_enable"),
    path("tools/<str:tool_id>/pause", lifecycle_api.ToolPauseView.as_view(), name="api_tool_pause"),
    path("tools/<str:tool_id>/deprecate", lifecycle_api.ToolDeprecateView.as_view(), name="api_tool_deprecate"),
    path("tools/<str:tool_id>/share", lifecycle_api.ToolShareView.as_view(), name="api_tool_share"),
    path("tools/<str:tool_id>/unshare", lifecycle_api.ToolUnshareView.as_view(), name="api_tool_unshare"),
    path("tools/<str:tool_id>/versions/<str:version>", lifecycle_api.VersionView.as_view(), name="api_tool_version"),
    path(
        "tools/<str:tool_id>/versions/<str:version>/stage",
        lifecycle_api.VersionStageView.as_view(),
        name="api_version_stage",
    ),
    path(
        "tools/<str:tool_id>/versions/<str:version>/yank",
        lifecycle_api.VersionYankView.as_view(),
        name="api_version_yank",
    ),
    path(
        "tools/<str:tool_id>/versions/<str:version>/dependencies/retry",
        lifecycle_api.VersionDependenciesView.as_view(),
        name="api_version_dependencies_retry",
    ),
    path("capsules", publishing_api.CapsuleListView.as_view(), name="api_capsules"),
    path("capsules/<cap:capsule_id>", publishing_api.CapsuleView.as_view(), name="api_capsule"),
    path(
        "capsules/<cap:capsule_id>/content",
        publishing_api.CapsuleContentView.as_view(),
        name="api_capsule_content",
    ),
    path("publisher-keys", publishing_api.PublisherKeyListView.as_view(), name="api_publisher_keys"),
    path(
        "publisher-keys/<pbk:publisher_key_id>/revoke",
        publishing_api.PublisherKeyRevokeView.as_view(),
        name="api_publisher_key_revoke",
    ),
    path("publishing", publishing_api.PublishingView.as_view(), name="api_publishing"),
    path("catalogue", installations_api.CatalogueView.as_view(), name="api_catalogue"),
    path("installations", installations_api.InstallationListView.as_view(), name="api_installations"),
    path("installations/<str:tool_id>", installations_api.InstallationView.as_view(), name="api_installation"),
    path(
        "installations/<str:tool_id>/pause",
        installations_api.InstallationPauseView.as_view(),
        name="api_installation_pause",
    ),
    path(
        "installations/<str:tool_id>/resume",
        installations_api.InstallationResumeView.as_view(),
        name="api_installation_resume",
    ),
    path(
        "installations/<str:tool_id>/remove",
        installations_api.InstallationRemoveView.as_view(),
        name="api_installation_remove",
    ),
    path("artifacts/<art:artifact_id>", artifacts_api.ArtifactView.as_view(), name="api_artifact"),
    path("files", files_api.FileListView.as_view(), name="api_files"),
    path("files/<path:path>", files_api.FileView.as_view(), name="api_file"),
    path("secrets", secrets_api.SecretListView.as_view(), name="api_secrets"),
    path("secrets/<str:name>", secrets_api.SecretView.as_view(), name="api_secret"),
    path("halts", halts_api.HaltListView.as_view(), name="api_halts"),
    path("halts/<hlt:halt_id>/lift", halts_api.HaltLiftView.as_view(), name="api_halt_lift"),
    path("chains", chains_api.ChainListView.as_view(), name="api_chains"),
    path("chains/preflight", chains_api.ChainPreflightView.as_view(), name="api_chain_preflight"),
    path("chains/<chn:chain_id>", chains_api.ChainView.as_view(), name="api_chain"),
    path("invocations/<inv:invocation_id>", invocations_api.InvocationView.as_view(), name="api_invocation"),
    path(
        "invocations/<inv:invocation_id>/events",
        following_api.InvocationEventsView.as_view(),
        name="api_invocation_events",
    ),
    path(
        "invocations/<inv:invocation_id>/replays",
        replays_api.InvocationReplaysView.as_view(),
        name="api_invocation_replays",
    ),
    path(
        "invocations/<inv:invocation_id>/reconstruction",
        replays_api.InvocationReconstructionView.as_view(),
        name="api_invocation_reconstruction",
    ),
    path("replays", replays_api.ReplaysView.as_view(), name="api_replays"),
    path("replays/<rpl:replay_id>", replays_api.ReplayView.as_view(), name="api_replay"),
    path("replays/<rpl:replay_id>/calls", replays_api.ReplayCallsView.as_view(), name="api_replay_calls"),
    path(
        "evidence/invocations/<inv:invocation_id>",
        invocations_api.InvocationEvidenceView.as_view(),
        name="api_evidence",
    ),
    path("evidence/facts", facts_api.FactListView.as_view(), name="api_facts"),
    path("evidence/integrity", checking_api.IntegrityView.as_view(), name="api_integrity"),
    path("evidence/verifications", checking_api.VerificationListView.as_view(), name="api_verifications"),
    path(
        "evidence/verifications/<ver:verification_id>",
        checking_api.VerificationView.as_view(),
        name="api_verification",
    ),
    path("evidence/exports", exports_api.ExportListView.as_view(), name="api_exports"),
    path("evidence/exports/<exp:job_id>", exports_api.ExportView.as_view(), name="api_export"),
    path("evidence/exports/<exp:job_id>/content", exports_api.ExportContentView.as_view(), name="api_export_content"),
    path("evidence/log", log_api.LogView.as_view(), name="api_log"),
    path("evidence/log/checkpoint", log_api.LogCheckpointView.as_view(), name="api_log_checkpoint"),
    path("evidence/log/tile/<path:tile>", log_api.LogTileView.as_view(), name="api_log_tile"),
    path("evidence/log/consistency", log_api.LogConsistencyView.as_view(), name="api_log_consistency"),
    path("evidence/log/anchor", log_api.LogAnchorView.as_view(), name="api_log_anchor"),
    path("evidence/facts/<fct:fact_id>/proof", log_api.FactProofView.as_view(), name="api_fact_proof"),
    path("evidence/erasures", erasure_api.ErasureListView.as_view(), name="api_erasures"),
    path("evidence/erasures/<era:erasure_id>", erasure_api.ErasureView.as_view(), name="api_erasure"),
    path("evidence/retention", erasure_api.RetentionView.as_view(), name="api_retention"),
    path("evidence/sinks", events_api.SinkListView.as_view(), name="api_sinks"),
    path("evidence/sinks/<snk:sink_id>", events_api.SinkView.as_view(), name="api_sink"),
    path("evidence/sinks/<snk:sink_id>/pause", events_api.SinkPauseView.as_view(), name="api_sink_pause"),
    path("evidence/sinks/<snk:sink_id>/resume", events_api.SinkResumeView.as_view(), name="api_sink_resume"),
    path("evidence/sinks/<snk:sink_id>/test", events_api.SinkTestView.as_view(), name="api_sink_test"),
    path("evidence/sinks/<snk:sink_id>/rotate", events_api.SinkRotateView.as_view(), name="api_sink_rotate"),
    path("evidence/sinks/<snk:sink_id>/end", events_api.SinkEndView.as_view(), name="api_sink_end"),
    path("consents", consents_api.ConsentListView.as_view(), name="api_consents"),
    path("consents/<cns:consent_id>", access_api.ConsentView.as_view(), name="api_consent"),
    path("grants", grants_api.GrantListView.as_view(), name="api_grants"),
    path("grants/<grt:grant_id>", grants_api.GrantView.as_view(), name="api_grant"),
    path("grants/<grt:grant_id>/extend", grants_api.GrantExtendView.as_view(), name="api_grant_extend"),
    path("grants/<grt:grant_id>/revoke", grants_api.GrantRevokeView.as_view(), name="api_grant_revoke"),
    path("delegations", delegations_api.DelegationListView.as_view(), name="api_delegations"),
    path("delegations/<grt:grant_id>", delegations_api.DelegationView.as_view(), name="api_delegation"),
    path("grants/requests", grants_api.GrantRequestListView.as_view(), name="api_grant_requests"),
    path("grants/requests/<grq:request_id>", grants_api.GrantRequestView.as_view(), name="api_grant_request"),
    path("budgets", budgets_api.BudgetListView.as_view(), name="api_budgets"),
    path("budgets/<bud:budget_id>", budgets_api.BudgetView.as_view(), name="api_budget"),
    path("budgets/<bud:budget_id>/raise", budgets_api.BudgetRaiseView.as_view(), name="api_budget_raise"),
    path("budgets/<bud:budget_id>/end", budgets_api.BudgetEndView.as_view(), name="api_budget_end"),
    path("policies", policies_api.PolicyListView.as_view(), name="api_policies"),
    path("policies/schema", policies_api.PolicySchemaView.as_view(), name="api_policy_schema"),
    path("policies/check", policies_api.PolicyCheckView.as_view(), name="api_policy_check"),
    path("policies/<pol:policy_id>", policies_api.PolicyView.as_view(), name="api_policy"),
    path("policies/<pol:policy_id>/simulate", policies_api.PolicySimulateView.as_view(), name="api_policy_simulate"),
    path("policies/<pol:policy_id>/analysis", policies_api.PolicyAnalysisView.as_view(), name="api_policy_analysis"),
    path("policies/<pol:policy_id>/discard", policies_api.PolicyDiscardView.as_view(), name="api_policy_discard"),
    path("agents", agents_api.AgentListView.as_view(), name="api_agents"),
    path("agents/<agt:agent_id>", agents_api.AgentView.as_view(), name="api_agent"),
    path("agents/<agt:agent_id>/disable", agents_api.AgentDisableView.as_view(), name="api_agent_disable"),
    path("agents/<agt:agent_id>/enable", agents_api.AgentEnableView.as_view(), name="api_agent_enable"),
    path("agents/<agt:agent_id>/keys", agents_api.KeyListView.as_view(), name="api_keys"),
    path("agents/<agt:agent_id>/callbacks", callbacks_api.EndpointListView.as_view(), name="api_callbacks"),
    path("callbacks/<cbe:endpoint_id>/rotate", callbacks_api.EndpointRotateView.as_view(), name="api_callback_rotate"),
    path(
        "callbacks/<cbe:endpoint_id>/disable", callbacks_api.EndpointDisableView.as_view(), name="api_callback_disable"
    ),
    path("callbacks/deliveries", callbacks_api.CallbackDeliveryListView.as_view(), name="api_callback_deliveries"),
    path(
        "callbacks/deliveries/<cbd:delivery_id>",
        callbacks_api.CallbackDeliveryView.as_view(),
        name="api_callback_delivery",
    ),
    path(
        "callbacks/deliveries/<cbd:delivery_id>/again",
        callbacks_api.CallbackDeliveryAgainView.as_view(),
        name="api_callback_again",
    ),
    path("keys/<key:key_id>/rotate", agents_api.KeyRotateView.as_view(), name="api_key_rotate"),
    path("keys/<key:key_id>/revoke", agents_api.KeyRevokeView.as_view(), name="api_key_revoke"),
    path("members", members_api.MemberListView.as_view(), name="api_members"),
    path("members/<usr:user_id>", members_api.MemberView.as_view(), name="api_member"),
    path("members/<usr:user_id>/roles", members_api.MemberRolesView.as_view(), name="api_member_roles"),
    path("members/<usr:user_id>/permissions", members_api.MemberPermissionView.as_view(), name="api_member_permission"),
    path(
        "members/<usr:user_id>/permissions/take",
        members_api.MemberPermissionTakeView.as_view(),
        name="api_member_permission_take",
    ),
    path("members/<usr:user_id>/exceptions", exceptions_api.MemberExceptionView.as_view(), name="api_member_exception"),
    path(
        "members/<usr:user_id>/exceptions/take",
        exceptions_api.MemberExceptionTakeView.as_view(),
        name="api_member_exception_take",
    ),
    path("members/<usr:user_id>/remove", members_api.MemberRemoveView.as_view(), name="api_member_remove"),
    path("invitations", members_api.InvitationListView.as_view(), name="api_invitations"),
    path("invitations/<usr:user_id>/again", members_api.InvitationAgainView.as_view(), name="api_invitation_again"),
    path(
        "invitations/<usr:user_id>/withdraw",
        members_api.InvitationWithdrawView.as_view(),
        name="api_invitation_withdraw",
    ),
    path("issuers", issuers_api.IssuerListView.as_view(), name="api_issuers"),
    path("issuers/<iss:issuer_id>", issuers_api.IssuerView.as_view(), name="api_issuer"),
    path("issuers/<iss:issuer_id>/distrust", issuers_api.IssuerDistrustView.as_view(), name="api_issuer_distrust"),
    path("issuers/<iss:issuer_id>/subjects", issuers_api.IssuerSubjectListView.as_view(), name="api_issuer_subjects"),
    path(
        "issuers/<iss:issuer_id>/subjects/<idn:identity_id>/remove",
        issuers_api.IssuerSubjectRemoveView.as_view(),
        name="api_issuer_subject_remove",
    ),
    path("channels", channels_api.ChannelListView.as_view(), name="api_channels"),
    path("channels/<ntf:notification_id>", channels_api.ChannelView.as_view(), name="api_channel"),
    path("channels/<ntf:notification_id>/end", channels_api.ChannelEndView.as_view(), name="api_channel_end"),
    path("channels/<ntf:notification_id>/deliveries", channels_api.DeliveryListView.as_view(), name="api_deliveries"),
    path("deliveries/<dlv:delivery_id>/again", channels_api.DeliveryAgainView.as_view(), name="api_delivery_again"),
    path(
        "configuration/plan",
        configuration_api.ConfigurationPlanView.as_view(),
        name="api_configuration_plan",
    ),
    path(
        "configuration/apply",
        configuration_api.ConfigurationApplyView.as_view(),
        name="api_configuration_apply",
    ),
    path(
        "configuration/export",
        configuration_api.ConfigurationExportView.as_view(),
        name="api_configuration_export",
    ),
    path(
        "configuration/schema",
        configuration_api.ConfigurationSchemaView.as_view(),
        name="api_configuration_schema",
    ),
    path("oauth/token", oauth.token, name="api_oauth_token"),
    path("manifest-schema", registry_api.manifest_schema_view, name="api_manifest_schema"),
    path("errors", catalogue.errors, name="api_errors"),
    path("errors/<str:reason>", catalogue.error, name="api_error"),
    path(
        "openapi.json",
        openapi.DocumentView.as_view(),
        name="api_openapi",
    ),
]

urlpatterns = [
    path("api/v1/", include(api)),  # first, since it is asked most: Django tries one after the other
    path("", include("access.urls")),
    path("", include("access.policies.urls")),
    path("", include("access.budgets.urls")),
    path("", include("registry.urls")),
    path("", include("invocations.urls")),
    path("", include("invocations.callbacks.urls")),
    path("", include("evidence.checking.urls")),
    path("", include("evidence.exports.urls")),
    path("", include("evidence.events.urls")),
    path("", include("evidence.urls")),
    path("", include("toolhub.configuration.urls")),
    path("log/checkpoints/checkpoint", log_api.global_checkpoint, name="global_checkpoint"),
    path("log/checkpoints/vkeys", log_api.global_keys, name="global_keys"),
    path("log/checkpoints/tile/<path:tile>", log_api.global_tile, name="global_tile"),
    path("", console.overview, name="overview"),
    path("theme", console.theme, name="theme"),
    path("language", console.language, name="set_language"),
    path("docs/api", console.api_reference, name="api_reference"),
    path("errors", catalogue.problems, name="problems"),
    path("errors/<str:reason>", catalogue.problem, name="problem"),
    path("sdk/", sdk.index, name="sdk"),
    path("sdk/files/<str:name>", sdk.file, name="sdk_file"),
    path("sdk/<str:name>/", sdk.project, name="sdk_project"),
    path("healthz", health.alive, name="healthz"),
    path(".well-known/oauth-protected-resource", oauth.protected_resource, name="oauth_protected_resource"),
    path(
        ".well-known/oauth-protected-resource/mcp",
        oauth.protected_resource,
        {"path": "/mcp"},
        name="oauth_protected_mcp",
    ),
    path(".well-known/oauth-authorization-server", oauth.authorization_server, name="oauth_authorization_server"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]
