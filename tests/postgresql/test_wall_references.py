"""Wall references: may a tenant's connection write a row that refers to what is not the tenant's?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.utils import IntegrityError, ProgrammingError

from access.models import (
    AccountAuthorization,
    AccountServer,
    Agent,
    AgentIdentity,
    ApiKey,
    AssertionRule,
    Budget,
    Consent,
    Grant,
    GrantRequest,
    PolicyVersion,
    ReturnedTokens,
    ServerAccount,
    Tenant,
    TrustedIssuer,
)
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import Erasure, EventSink, SinkSecret, Snapshot, SubjectKey, TenantKey, Verification
from invocations.agent_runs.models import AgentRun, AgentRunEvent, AgentRunStep
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.call_costs.models import CallCost
from invocations.call_hours.models import CallHour
from invocations.callbacks.models import CallbackAttempt, CallbackDelivery, CallbackEndpoint, CallbackSecret
from invocations.chains.models import Chain, ChainStep
from invocations.models import Invocation, StoredFile
from invocations.playground.models import Playground, PlaygroundConversation, PlaygroundMessage, PlaygroundSide
from invocations.replays.models import Replay, Rerun
from invocations.tool_files.models import ToolFiles
from kernel.database.tenancy import acting_for
from kernel.ids import encode, new_id
from kernel.principal import ActorKind, Principal
from registry.models import (
    Capsule,
    Installation,
    InstallationState,
    ModelCircuit,
    ModelProvider,
    PublisherKey,
    Tool,
    ToolVersion,
    VersionState,
)
from tests.support.begin_end_pairs import end_call, keep_calls
from tests.support.connections import build_connection
from toolhub.database.row_level_security import (
    NOT_ASKED,
    POLICY,
    build_reference_conditions,
    describe_missing_policies,
    install_policies,
    list_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db import models

    from tests.conftest import Caller

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ECHO = "sample.tools.echo"
AT: dict[str, Any] = {"created_at": NOW, "deadline_at": NOW}
KEY_REFUSED = "The key of this snapshot is not in use."


def is_refused(write: Callable[[], Any], *, tenant: Tenant) -> bool:
    try:
        with acting_for(tenant.pk), transaction.atomic():
            write()
    except ProgrammingError as error:
        assert "row-level security" in str(error)
        return True
    except IntegrityError as error:  # the trigger comes first, and looks for the key as who writes: behind the wall
        assert KEY_REFUSED in str(error)
        return True
    return False


def saved(row: models.Model) -> Any:
    row.save(force_insert=True)
    return row


def kept(call: Invocation) -> Invocation:
    """With its Begin, without which no transaction ends."""
    return keep_calls(call)[0]


def begun(chain: Chain) -> Chain:
    """The same of a chain."""
    actor = Principal(ActorKind.AGENT, encode("agt", chain.agent_id), chain.agent.name, chain.tenant_id)
    with transaction.atomic():
        saved(chain)
        evidence.record(kind=Kind.CHAIN_BEGAN, subject=chain.wire_id, actor=actor)
    return chain


def some_tool(tenant: Tenant, name: str, state: str = VersionState.APPROVED) -> tuple[Tool, ToolVersion]:
    tool = saved(Tool(tenant=tenant, name=name, state_changed_by="usr_1"))
    version = ToolVersion(tool=tool, version="1.0.0", manifest={}, review_state=state, submitted_by="usr_1")
    return tool, saved(version)


def installation(tenant: Tenant, tool: Tool, version: ToolVersion | None) -> Installation:
    return Installation(tenant=tenant, tool=tool, name=tool.name, version=version, changed_by="usr_1")


@pytest.mark.req("TOOLS-1", "TOOLS-22")
@pytest.mark.django_db
def test_an_installation_is_of_a_tool_that_is_the_tenants_own_or_shared_and_of_a_version_of_it(
    tenant: Tenant, foreign_tenant: Tenant
) -> None:
    own, own_draft = some_tool(tenant, "mine.tools.a", VersionState.SUBMITTED)
    private, private_version = some_tool(foreign_tenant, "theirs.tools.private")
    shared, approved = some_tool(foreign_tenant, "theirs.tools.shared")
    other, other_version = some_tool(foreign_tenant, "theirs.tools.other")
    Tool.objects.filter(pk__in=[shared.pk, other.pk]).update(shared=True)
    draft = saved(ToolVersion(tool=shared, version="2.0.0", manifest={}, submitted_by="usr_1"))

    def refused(tool: Tool, version: ToolVersion | None) -> bool:
        return is_refused(lambda: saved(installation(tenant, tool, version)), tenant=tenant)

    assert refused(private, private_version)
    assert refused(private, None)
    assert refused(shared, draft)
    assert refused(shared, other_version)
    assert refused(own, approved)
    assert not refused(own, own_draft)
    assert not refused(shared, approved)
    row = Installation.objects.get(tool=shared)
    for changes in ({"tool": private}, {"version": draft}, {"version": other_version}, {"version": own_draft}):
        change = Installation.objects.filter(pk=row.pk)
        assert is_refused(lambda change=change, changes=changes: change.update(**changes), tenant=tenant)  # type: ignore[misc]


@pytest.mark.req("TOOLS-1")
@pytest.mark.django_db
def test_what_a_row_refers_to_already_it_keeps_also_when_that_is_shared_no_more(
    tenant: Tenant, foreign_tenant: Tenant, caller: Caller
) -> None:
    tool, version = some_tool(foreign_tenant, "theirs.tools.shared")
    another, another_version = some_tool(tenant, "mine.tools.shared")
    Tool.objects.filter(pk=tool.pk).update(shared=True)
    with acting_for(tenant.pk):
        row = saved(installation(tenant, tool, version))
        call = kept(call_of(tenant, caller.agent, row, version))
    Tool.objects.filter(pk=tool.pk).update(shared=False)
    ToolVersion.objects.filter(pk=version.pk).update(review_state=VersionState.REFUSED)

    with acting_for(tenant.pk):
        paused = Installation.objects.filter(pk=row.pk).update(state=InstallationState.PAUSED)
        moved = Installation.objects.filter(pk=row.pk).update(tool=another, version=another_version)
        ended = end_call(call, "cancelled")

    assert (paused, moved, ended) == (1, 1, 1)
    assert is_refused(lambda: Installation.objects.filter(pk=row.pk).update(tool=tool, version=version), tenant=tenant)


def call_of(tenant: Tenant, agent: Agent, row: Installation | None, version: ToolVersion | None) -> Invocation:
    return Invocation(
        tenant=tenant, agent=agent, tool=ECHO, installation=row, version=version, state="held", created_at=NOW
    )


def callback_cases(
    tenant: Tenant, agent: Agent, theirs: Tenant, their_agent: Agent
) -> dict[tuple[str, str], models.Model]:
    said = {"url": "https://a.example.org", "created_by": "usr_1"}
    own = saved(CallbackEndpoint(tenant=tenant, agent=agent, name="own", **said))
    their = saved(CallbackEndpoint(tenant=theirs, agent=their_agent, name="theirs", **said))
    call, told = kept(call_of(tenant, agent, None, None)), call_of(tenant, agent, None, None)
    told.callback = their
    their_call, another = (kept(call_of(theirs, their_agent, None, None)) for _ in range(2))
    message = saved(CallbackDelivery(tenant=theirs, endpoint=their, invocation=another, created_at=NOW))
    return {
        ("invocations_callbackattempt", "delivery_id"): CallbackAttempt(tenant=tenant, delivery=message, at=NOW, ms=1),
        ("invocations_callbackdelivery", "endpoint_id"): CallbackDelivery(
            tenant=tenant, endpoint=their, invocation=call, created_at=NOW
        ),
        ("invocations_callbackdelivery", "invocation_id"): CallbackDelivery(
            tenant=tenant, endpoint=own, invocation=their_call, created_at=NOW
        ),
        ("invocations_callbackendpoint", "agent_id"): CallbackEndpoint(
            tenant=tenant, agent=their_agent, name="more", **said
        ),
        ("invocations_callbacksecret", "endpoint_id"): CallbackSecret(
            tenant=tenant, endpoint=their, key_id="k", wrapped_key=b"x"
        ),
        ("invocations_invocation", "callback_id"): told,
    }


def cases(tenant: Tenant, agent: Agent, theirs: Tenant, their_agent: Agent) -> dict[tuple[str, str], models.Model]:
    """By table and column: a row of the tenant which there refers to what is another tenant's."""
    tool, _ = some_tool(tenant, "mine.tools.a")
    private, private_version = some_tool(theirs, "theirs.tools.private")
    their_grant = saved(Grant(tenant=theirs, agent=their_agent, tools="*", reason="x", given_by="usr_1"))
    their_installation = saved(installation(theirs, private, private_version))
    issuer = saved(TrustedIssuer(tenant=tenant, issuer="https://a", audience="b", jwks={}, created_by="usr_1"))
    consent = {"tool": ECHO, "purpose": "x", "validity_s": 60, "requested_by": "usr_1"}
    their_consent = saved(Consent(tenant=theirs, agent=their_agent, versions="^2", **consent))
    own_installation = saved(installation(tenant, tool, None))
    decided = {"state": "granted", "decided_at": NOW, "decided_by": "usr_1"}
    budget = {"dimension": "calls", "amount": 1, "window_s": 60, "set_by": "usr_1"}
    key = ApiKey(agent=agent, lookup="aaaaaaaa", digest=b"", created_by="usr_1")
    key.expires_at, key.replaces = datetime.now(UTC) + timedelta(days=1), ApiKey.objects.get(agent=their_agent)
    held = call_of(tenant, agent, None, None)
    held.consent = their_consent
    made_for_theirs = call_of(tenant, agent, None, None)
    their_chain = begun(Chain(tenant=theirs, agent=their_agent, created_at=NOW))
    made_for_theirs.chain_step = saved(ChainStep(chain=their_chain, position=0, name="one", tool=ECHO))
    version = {"version": "2.0.0", "manifest": {}, "submitted_by": "usr_1"}
    own_call, their_call = kept(call_of(tenant, agent, None, None)), kept(call_of(theirs, their_agent, None, None))
    given = {"tools": "*", "reason": "x", "given_by": "usr_1", "expires_at": NOW + timedelta(days=1)}
    more = artifact_cases(tenant, theirs, own_call, their_call)
    more |= key_cases(tenant, agent, theirs)
    more |= capsule_cases(tenant, tool, theirs)
    more |= replay_cases(tenant, theirs, own_call, their_call, private_version)
    connected = build_connection(agent=their_agent, member=get_user_model().objects.create(username="paul"), name="p")
    connected.tenant = tenant
    their_issuer = saved(TrustedIssuer(tenant=theirs, issuer="https://t", audience="t", jwks={}, created_by="usr_1"))
    vouched = build_connection(agent=agent, member=get_user_model().objects.create(username="vera"), name="v")
    vouched.issuer = their_issuer
    rule = {"scopes": ["tools:read"], "token_minutes": 5, "set_by": "usr_1", "set_at": NOW}
    more |= {
        ("access_assertionrule", "agent_id"): AssertionRule(issuer=issuer, agent=their_agent, **rule),
        ("access_connection", "agent_id"): connected,
        ("access_connection", "issuer_id"): vouched,
        ("access_grant", "delegated_from_id"): Grant(tenant=tenant, agent=agent, delegated_from=their_grant, **given),
    }
    return (
        callback_cases(tenant, agent, theirs, their_agent)
        | more
        | {
            ("access_agentidentity", "agent_id"): AgentIdentity(issuer=issuer, subject="x", agent=their_agent),
            ("access_apikey", "replaces_id"): key,
            ("access_budget", "agent_id"): Budget(tenant=tenant, scope="agent", agent=their_agent, **budget),
            ("access_budget", "grant_id"): Budget(tenant=tenant, scope="grant", grant=their_grant, **budget),
            ("access_consent", "agent_id"): Consent(tenant=tenant, agent=their_agent, versions="^1", **consent),
            ("access_grant", "agent_id"): Grant(
                tenant=tenant, agent=their_agent, tools="*", reason="x", given_by="usr_1"
            ),
            ("access_grantrequest", "agent_id"): GrantRequest(
                tenant=tenant, agent=their_agent, tools="*", requested_by="usr_1"
            ),
            ("access_grantrequest", "grant_id"): GrantRequest(
                tenant=tenant, agent=agent, tools="*", requested_by="usr_1", grant=their_grant, **decided
            ),
            ("invocations_chain", "agent_id"): Chain(tenant=tenant, agent=their_agent, created_at=NOW),
            ("invocations_invocation", "chain_step_id"): made_for_theirs,
            **agent_run_cases(tenant, agent, their_agent),
            **playground_cases(tenant, their_agent),
            ("invocations_callhour", "agent_id"): CallHour(
                tenant=tenant, agent=their_agent, hour=NOW, state="succeeded", calls=1
            ),
            ("invocations_callcost", "agent_id"): CallCost(
                tenant=tenant, agent=their_agent, invocation=own_call, made_at=NOW
            ),
            ("invocations_callcost", "invocation_id"): CallCost(
                tenant=tenant, agent=agent, invocation=their_call, made_at=NOW
            ),
            ("invocations_invocation", "consent_id"): held,
            ("invocations_invocation", "installation_id"): call_of(tenant, agent, their_installation, None),
            ("invocations_invocation", "version_id"): call_of(tenant, agent, own_installation, private_version),
            ("invocations_invocation", "proposed_by_id"): call_proposed_by(
                their_call, call_of(tenant, agent, None, None)
            ),
            ("registry_modelcircuit", "provider_id"): ModelCircuit(
                tenant=tenant, provider=provider_of(theirs), model="m"
            ),
            ("registry_installation", "tool_id"): installation(tenant, private, None),
            ("registry_installation", "version_id"): Installation(
                tenant=tenant, tool=tool, name="mine.tools.b", version=private_version, changed_by="usr_1"
            ),
            ("registry_tool", "current_id"): Tool(
                tenant=tenant, name="mine.tools.b", current=private_version, state_changed_by="usr_1"
            ),
            ("registry_toolversion", "base_id"): ToolVersion(tool=tool, base=private_version, **version),
        }
    )


def call_proposed_by(answer: Invocation, call: Invocation) -> Invocation:
    call.proposed_by = answer
    return call


def provider_of(tenant: Tenant) -> Any:
    return saved(ModelProvider(tenant=tenant, name="theirs", kind="openai", address="https://a", changed_by="usr_1"))


def capsule_of(tenant: Tenant, digest: str, key: PublisherKey | None = None) -> Capsule:
    signed = {"signed_by": key, "envelope": "{}" if key else ""}
    return Capsule(tenant=tenant, digest=digest, package="p", size=1, content=b"x", uploaded_by="usr_1", **signed)


def capsule_cases(tenant: Tenant, tool: Tool, theirs: Tenant) -> dict[tuple[str, str], models.Model]:
    their_key = saved(PublisherKey(tenant=theirs, name="k", key_id="0", public_key="x", added_by="usr_1"))
    their_capsule = saved(capsule_of(theirs, "sha256:1"))
    version = {"version": "3.0.0", "manifest": {}, "submitted_by": "usr_1"}
    return {
        ("registry_capsule", "signed_by_id"): capsule_of(tenant, "sha256:2", their_key),
        ("registry_toolversion", "capsule_id"): ToolVersion(tool=tool, capsule=their_capsule, **version),
    }


def artifact_cases(
    tenant: Tenant, theirs: Tenant, own: Invocation, their: Invocation
) -> dict[tuple[str, str], models.Model]:
    def content(of: Tenant) -> Any:
        return saved(
            ArtifactContent(
                tenant=of, fingerprint="f", size=1, key_id="k", wrapped_key=b"x", nonce=b"x", ciphertext=b"x"
            )
        )

    mine, their_content = content(tenant), content(theirs)
    said = {"tenant": tenant, "media_type": "text/plain"}
    return {
        ("invocations_artifact", "invocation_id"): Artifact(name="a", invocation=their, content=mine, **said),
        ("invocations_artifact", "content_id"): Artifact(name="b", invocation=own, content=their_content, **said),
        ("invocations_artifact", "thumbnail_id"): Artifact(
            name="c", invocation=own, content=mine, thumbnail=their_content, **said
        ),
    }


def key_cases(tenant: Tenant, agent: Agent, theirs: Tenant) -> dict[tuple[str, str], models.Model]:
    """What is sealed under another tenant's key would go when that tenant forgets the person."""
    wrapped = {"wrapped_key": b"x", "created_at": NOW}
    their_tenant_key, _ = TenantKey.objects.get_or_create(tenant_id=theirs.pk, defaults={"key_id": "k", **wrapped})
    their_key = saved(SubjectKey(tenant_key=their_tenant_key, tenant_id=theirs.pk, subject="theirs", **wrapped))
    their_sink = saved(
        EventSink(tenant_id=theirs.pk, name="theirs", channel="webhook", next_attempt_at=NOW, created_by="usr_1")
    )
    their_look = saved(Verification(tenant_id=theirs.pk, asked_by="usr_2", begun_at=NOW))
    sealed = {"subject_key": their_key, "wrapped_key": b"x", "nonce": b"x", "ciphertext": b"x", "size": 1}
    call = call_of(tenant, agent, None, None)
    call.values_key = their_key
    return {
        ("access_serveraccount", "subject_key_id"): account_at(
            tenant, tenant, "of-theirs", subject_key=their_key, state="connected", issuer="https://i", client_id="c"
        ),
        ("access_serveraccount", "server_id"): account_at(tenant, theirs, "at-theirs"),
        ("access_accountauthorization", "account_id"): AccountAuthorization(
            tenant=tenant, account=saved(account_at(theirs, theirs, "begun")), digest="d", begun_at=NOW
        ),
        ("access_returnedtokens", "account_id"): ReturnedTokens(
            tenant=tenant, account=saved(account_at(theirs, theirs, "returned")), state="returned"
        ),
        ("access_returnedtokens", "subject_key_id"): ReturnedTokens(
            tenant=tenant,
            account=saved(account_at(tenant, tenant, "returned-here")),
            subject_key=their_key,
            next_attempt_at=NOW,
        ),
        ("evidence_erasure", "key_id"): Erasure(
            tenant_id=tenant.pk, subject="x", key=their_key, reason="x", asked_by="usr_1", asked_at=NOW
        ),
        ("evidence_sinksecret", "sink_id"): SinkSecret(
            tenant_id=tenant.pk, sink=their_sink, key_id="k", wrapped_key=b"x"
        ),
        ("evidence_snapshot", "subject_key_id"): Snapshot(
            tenant_id=tenant.pk, invocation_id=call.pk, kind="input", alg="a", commitment="c", created_at=NOW, **sealed
        ),
        ("evidence_verification", "closed_by_id"): Verification(
            tenant_id=tenant.pk, asked_by="usr_1", begun_at=NOW, closed_by=their_look
        ),
        ("evidence_subjectkey", "tenant_key_id"): SubjectKey(
            tenant_key=their_tenant_key, tenant_id=tenant.pk, subject="x", **wrapped
        ),
        ("invocations_artifactcontent", "subject_key_id"): ArtifactContent(tenant=tenant, fingerprint="g", **sealed),
        ("invocations_chain", "values_key_id"): Chain(tenant=tenant, agent=agent, values_key=their_key, created_at=NOW),
        ("invocations_agentrun", "values_key_id"): AgentRun(tenant=tenant, agent=agent, values_key=their_key, **AT),
        ("invocations_invocation", "values_key_id"): call,
        ("invocations_storedfile", "subject_key_id"): StoredFile(
            tenant=tenant, path="/data/x", fingerprint="f", changed_by="usr_1", **sealed
        ),
        ("invocations_toolfiles", "subject_key_id"): ToolFiles(
            tenant=tenant,
            group="mcp.a",
            package="a",
            scope="person",
            owner="x",
            fingerprint="f",
            changed_by="inv_1",
            **sealed,
        ),
    }


def account_at(tenant: Tenant, of: Tenant, name: str, **more: Any) -> ServerAccount:
    """Of the tenant, at a server that is known to ``of``."""
    member = get_user_model().objects.create(username=name)
    server = saved(AccountServer(tenant=of, resource=f"https://{name}.example.com/mcp"))
    return ServerAccount(tenant=tenant, member=member, server=server, **more)


def agent_run_cases(tenant: Tenant, agent: Agent, their_agent: Agent) -> dict[tuple[str, str], models.Model]:
    own, theirs = (saved(AgentRun(tenant=each.tenant, agent=each, **AT)) for each in (agent, their_agent))
    their_step = saved(AgentRunStep(run=theirs, position=0, turn=1, role="model", tool=ECHO))
    call = call_of(tenant, agent, None, None)
    call.run_step = their_step
    return {
        ("invocations_agentrun", "agent_id"): AgentRun(tenant=tenant, agent=their_agent, **AT),
        ("invocations_agentrunevent", "step_id"): AgentRunEvent(
            run=own, number=1, kind="model.asked", step=their_step, at=NOW
        ),
        ("invocations_invocation", "run_step_id"): call,
    }


def playground_cases(tenant: Tenant, their_agent: Agent) -> dict[tuple[str, str], models.Model]:
    their_run = saved(AgentRun(tenant=their_agent.tenant, agent=their_agent, **AT))
    talk = saved(PlaygroundConversation(tenant=tenant, person="usr_1"))
    message = saved(PlaygroundMessage(conversation=talk, number=1, token=new_id()))
    return {
        ("invocations_playground", "agent_id"): Playground(tenant=tenant, agent=their_agent, created_by="usr_1"),
        ("invocations_playgroundside", "run_id"): PlaygroundSide(message=message, place=1, model="m", run=their_run),
    }


def replay_cases(
    tenant: Tenant, theirs: Tenant, own: Invocation, their: Invocation, their_version: ToolVersion
) -> dict[tuple[str, str], models.Model]:
    asked = {"tenant": tenant, "reason": "x", "asked_by": "usr_1", "notified_at": NOW, "created_at": NOW}
    their_policy = saved(PolicyVersion(tenant=theirs, number=77, document={}, digest="d", drafted_by="usr_1"))
    period = {"what": "decisions", "since": NOW, "until": NOW + timedelta(days=1)}
    replay = saved(Replay(what="runs", invocation=own, **asked))
    return {
        ("invocations_replay", "invocation_id"): Replay(what="runs", invocation=their, **asked),
        ("invocations_replay", "policy_id"): Replay(policy=their_policy, **period, **asked),
        ("invocations_replay", "version_id"): Replay(what="runs", invocation=own, version=their_version, **asked),
        ("invocations_rerun", "invocation_id"): Rerun(
            replay=replay, invocation=their, number=1, verdict="match", version="1.0.0", created_at=NOW
        ),
    }


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_no_row_refers_to_what_is_another_tenants(caller: Caller, foreign_caller: Caller) -> None:
    tenant, theirs = caller.agent.tenant, foreign_caller.agent.tenant
    found = cases(tenant, caller.agent, theirs, foreign_caller.agent)

    asked = {(name, column) for name, model in list_tables().items() for column in build_reference_conditions(model)}
    assert set(found) == asked  # whoever adds a foreign key adds a case
    assert [at for at, row in found.items() if not is_refused(lambda row=row: saved(row), tenant=tenant)] == []  # type: ignore[misc]
    assert not {at for at in NOT_ASKED if at[0] not in list_tables()}
    for row in found.values():  # none of them is wrong in itself
        if isinstance(row, Invocation):
            kept(row)
        elif isinstance(row, Chain):
            begun(row)
        else:
            saved(row)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_a_database_of_a_version_before_gets_the_new_checks(caller: Caller, foreign_caller: Caller) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP POLICY {POLICY} ON access_grant")
        cursor.execute("DROP FUNCTION toolhub_refers_home_access_grant")
        cursor.execute(f"CREATE POLICY {POLICY} ON access_grant TO toolhub_app USING (true) WITH CHECK (true)")
        cursor.execute(f"COMMENT ON POLICY {POLICY} ON access_grant IS 'of a version before'")
    tenant = caller.agent.tenant
    planted = Grant(tenant=tenant, agent=foreign_caller.agent, tools="*", reason="x", given_by="usr_1")

    assert "access_grant" in describe_missing_policies(connection)
    assert install_policies(connection)
    assert describe_missing_policies(connection) == ""
    assert is_refused(lambda: saved(planted), tenant=tenant)
