"""A populated tenant: what does a tenant look like that has one of everything that an address can name?

:func:`make_things` makes it, with the tenant's own word in every text that somebody can read. Two tenants made so have the same
things by the same names, and nothing else in common. What is sent to addresses that change something:
``tests/support/request_bodies.py``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from joserfc.jwk import ECKey

from access import services as access
from access.budgets.services import set_budget
from access.clients.services import enter_client
from access.consents import services as consents
from access.delegations.services import delegate_grant
from access.grants.requests import request_grant
from access.halts import services as halts
from access.issuers import services as issuers
from access.members import invitations
from access.models import Delivery, Reach, Tenant
from access.notifications import channels
from access.policies import services as policies
from access.roles import Role
from access.server_accounts.services import request_account
from evidence.erasures.services import erase_subject, preview_erasure
from evidence.exports.jobs import advance_next
from evidence.exports.services import make_export
from evidence.integrity.services import ask_verification
from evidence.models import Checkpoint, Fact, Seal, SnapshotKind
from evidence.search.saved_searches import save_search
from evidence.services import seal_values
from evidence.sinks.services import make_sink
from invocations.agent_runs.limits import RunLimits
from invocations.agent_runs.models import AgentRunStep
from invocations.agent_runs.services import RunQuestion, accept_run
from invocations.artifacts.description import DescribedArtifact
from invocations.artifacts.services import keep_artifacts
from invocations.callbacks.models import CallbackDelivery
from invocations.callbacks.services import make_endpoint
from invocations.files import services as files
from invocations.models import Invocation
from invocations.playground.models import PlaygroundConversation, PlaygroundMessage, PlaygroundSide
from invocations.playground.services import build_playground_principal, set_up_playground
from invocations.replays.models import Rerun
from invocations.replays.services import replay_call
from invocations.saved_views.services import save_view
from invocations.tool_files.models import ToolFiles
from invocations.value_keys import find_values_key
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import decode, new_id
from kernel.principal import Principal
from registry.capsules.publisher_keys import add_publisher_key
from registry.capsules.services import upload_capsule
from registry.dependencies import states
from registry.dependencies.failures import Failure
from registry.imports.services import import_document
from registry.model_prefixes.services import set_prefix
from registry.model_prices.services import set_model_prices
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.secrets import services as secrets
from registry.tools import lifecycle
from registry.versions import services as registry
from tests.conftest import make_caller, make_person
from tests.support.begin_end_pairs import keep_calls
from tests.support.calls import row_of
from tests.support.capsules import capsule, pem_of, public_pem_of, shouting
from tests.support.connected_models import ALIAS, MODEL, PROVIDER, connect_scripted_model
from tests.support.connections import make_connection
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.import_sources import DRAFTED, GROUP, REMOTE_TOOL, write_document
from tests.support.manifests import manifest
from tests.support.model_calls import say
from tests.support.policies import permits
from unitools.capsules.signatures import sign

if TYPE_CHECKING:
    from django.test import Client

    from invocations.agent_runs.models import AgentRun
    from tests.conftest import Caller, Person
    from tests.support.routes import Route

ECHO, WRITE, OFFERED = "sample.tools.echo", "sample.tools.write", "sample.tools.plans"
PUBLISHER = "publisher"
JWKS = {"keys": [ECKey.generate_key("P-256").as_dict(private=False)]}
GRANTED_UNTIL = datetime(2900, 1, 1, tzinfo=UTC)


@dataclass
class Things:
    """``named``: what an address names, by ``route.parameter``, ``area.parameter`` (its first part) or ``parameter``."""

    tenant: Tenant
    word: str
    people: dict[str, Person]
    caller: Caller
    robot: Caller
    named: dict[str, Any] = field(default_factory=dict)
    also: dict[str, Any] = field(default_factory=dict)  # what only forms name

    def one(self, route: Route, parameter: str) -> Any:
        for key in (f"{route.name}.{parameter}", f"{route.area}.{parameter}", parameter):
            if key in self.named:
                return self.named[key]
        raise LookupError(f"tests/support/populated_tenant.py makes nothing for {parameter} in {route.path}.")

    def url(self, route: Route) -> str:
        return reverse(route.name, kwargs={name: self.one(route, name) for name in route.takes})

    def with_(self, **named: Any) -> Things:
        return Things(
            self.tenant, self.word, self.people, self.caller, self.robot, self.named | {
                key.replace("__", "."): value for key, value in named.items()
            }, self.also,
        )  # fmt: skip


def make_things(slug: str) -> Things:
    """Needs the fixture ``bell``: its calls run."""
    tenant, word = access.create_tenant(slug=slug, name=f"Canary of {slug}"), f"canary-{slug}"
    people = {
        name: make_person(tenant, f"{name}-{word}", *roles)
        for name, roles in {
            "owner": [Role.OWNER],
            "first": [Role.OPERATOR],
            "second": [Role.OPERATOR],
            "author": [Role.DEVELOPER],
        }.items()
    }
    system = Principal.system("test", tenant_id=tenant.pk)
    things = Things(tenant, word, people, make_caller(system), make_caller(system, "robot"))
    for made in (_tools, _calls, _talk, _asked, _rules, _people, _sealed):
        things.named |= made(things)
    return things


def _sealed(things: Things) -> dict[str, Any]:
    """All facts so far are in the log; one export of them is made, another one waits."""
    by = things.people["owner"].by
    with signing_with():
        seal_everything()
        done = make_export(format="jsonl", query="outcome:failed", by=by)
        while advance_next():
            pass
    waiting = make_export(format="csv", query=f"agent:{things.word}", by=by)
    size = Checkpoint.objects.filter(tenant_id=things.tenant.pk).latest("size").size
    return {
        "tile": "entries/000.p/1",
        "size": size,
        "fact_proof.fact_id": Seal.objects.get(tenant_id=things.tenant.pk, leaf_index=0).fact_id,
        "api_fact_proof.fact_id": Seal.objects.get(tenant_id=things.tenant.pk, leaf_index=0).fact_id,
        "export_content.job_id": done.pk,
        "api_export_content.job_id": done.pk,
        "job_id": waiting.pk,
        "verification_id": ask_verification(by=by).pk,
    }


def _submit(things: Things, name: str, **changes: Any) -> ToolVersion:
    said = f"A sample tool of {things.word}."
    document = manifest(name, display_name=things.word, description=said, **changes)
    return registry.submit_version(document=document, by=things.people["author"].by)


def _enable(things: Things, version: ToolVersion) -> ToolVersion:
    by = things.people["first"].by
    reviews.review_version(
        version_id=version.pk,
        decision=Decision.APPROVE,
        note=things.word,
        acknowledged=[change["id"] for change in version.changes],
        by=by,
    )
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason=things.word, by=by)
    return version


def _tools(things: Things) -> dict[str, Any]:
    """Two in use, of one of which another version waits; one whose dependencies could not be resolved; a secret."""
    used = _enable(things, _submit(things, "echo", requires_sandbox=False))
    write = {"side_effect": "Write", "idempotency": "keyed", "dry_run": True, "consent": {"validity_seconds": 7200}}
    _enable(things, _submit(things, "write", **write))
    waiting = _submit(things, "echo", version="1.0.1", requires_sandbox=False)
    needy = _submit(
        things, "needy", implementation={"module": "sample.tools", "entry": "echo"}, dependencies=["first==1.0"]
    )
    claimed = states.claim_next()
    assert claimed is not None
    states.write_failed(claimed, Failure("unknown_package", f"There is no {things.word}.", "Correct it."))
    for name in ("shop.token", f"of.{things.word}"):
        secrets.set_secret(name=name, value="not shown anywhere", by=things.people["first"].by)
    owner, packed = things.people["owner"].by, capsule(shouting(display_name=things.word), readme=things.word)
    publisher = add_publisher_key(name=things.word, pem=public_pem_of(), by=owner)
    uploaded = upload_capsule(content=packed.data, envelope=sign(packed, pem_of()), by=things.people["author"].by)
    for alias, operation in {ALIAS: "chat", "vectors": "embed", "ranker": "rerank"}.items():
        terms = {"model": things.word, "operation": operation, "unpriced": "count"}
        connect_scripted_model(things.people["first"].by, alias, **terms)
    set_model_prices(document={}, reason=things.word, by=things.people["first"].by)
    set_prefix(text=f"You work for {things.tenant.slug}.", reason=things.word, by=things.people["first"].by)
    access.give_grant(agent_id=None, tools="model.*", reason=things.word, by=things.people["first"].by)
    for path in ("/data/of/all.csv", f"/data/of/{things.word}.csv"):
        files.store_file(path=path, content=b"not shown anywhere", by=things.people["first"].by)
    kept = ToolFiles.objects.create(
        tenant=things.tenant,
        group=ECHO.rpartition(".")[0],
        package="sample",
        scope="tenant",
        names=[[f"/data/{things.word}.db", 10]],
        size=10,
        fingerprint="hmac-sha256:00",
        changed_by="inv_x",
        **dict.fromkeys(("wrapped_key", "nonce", "ciphertext"), b""),
    )
    brought = import_document(
        data=write_document(things.word), group=GROUP, wanted=["getItem"], by=things.people["author"].by
    )
    things.also["draft"] = _write_over(brought.drafts[0]["document"], things.word)
    return {
        "import_id": brought.pk,
        "import_draft.tool": DRAFTED,
        "import_draft_remove.tool": DRAFTED,
        "api_import_draft.tool": DRAFTED,
        "tool_next_version.name": REMOTE_TOOL,
        "tool_id": ECHO,
        "tools.name": ECHO,
        "submissions.name": ECHO,
        "installations.name": ECHO,
        "install.publisher": PUBLISHER,
        "install.name": OFFERED,
        "secrets.name": "shop.token",
        "model-providers.name": PROVIDER,
        "model-providers.alias": ALIAS,
        "model_id": MODEL,
        "model-prices.number": 1,
        **{
            f"{route}.model_id": f"model.{PROVIDER}.vectors"
            for route in (
                "api_model_embed",
                *(f"served_content_{word}{version}" for word in ("vector", "vectors") for version in ("", "_v1")),
            )
        },
        "api_model_rerank.model_id": f"model.{PROVIDER}.ranker",
        "capsule_id": uploaded.capsule.pk,
        "publisher_key_id": publisher.pk,
        "version_capsule.version_id": uploaded.versions[0].pk,
        "files.path": "of/all.csv",
        "files_id": kept.pk,
        "what": "pause",
        "version": used.version,
        "version_id": used.pk,
        "reviews.version_id": waiting.pk,
        "version_dependencies_retry.version_id": needy.pk,
        "api_version_dependencies_retry.tool_id": needy.tool.name,
    }


def _begin_run(things: Things) -> AgentRun:
    """An agent run whose model nobody has asked yet."""
    question = RunQuestion(MODEL, say(things.word), RunLimits())
    envelope = RequestEnvelope(request_id=f"run-of-{things.word}", actor={"type": "agent", "id": things.word})
    return accept_run(question, envelope, by=things.caller.by)


def _talk(things: Things) -> dict[str, Any]:
    """A conversation of the playground, in which a call waits for a person."""
    owner, word = things.people["owner"].by, things.word
    playground = set_up_playground(
        name="playground", models=[MODEL], tools="sample.*", money=10**9, calls=None, reason=word, by=owner
    )
    question = RunQuestion(MODEL, say(f"a message of {word}"), RunLimits())
    envelope = RequestEnvelope(request_id=f"talk-of-{word}", actor={"type": "user", "id": owner.id}, user_id=owner.id)
    run = accept_run(question, envelope, by=build_playground_principal(playground))
    talk = PlaygroundConversation.objects.create(tenant=things.tenant, person=owner.id)
    message = PlaygroundMessage.objects.create(conversation=talk, number=1, token=new_id())
    PlaygroundSide.objects.create(message=message, place=1, model=MODEL, run=run)
    AgentRunStep.objects.create(run=run, position=0, turn=1, role="model", tool=MODEL, state="succeeded")
    step = AgentRunStep.objects.create(run=run, position=1, turn=1, role="tool", tool=WRITE, state="running")
    held = row_of(things.caller.invoke(WRITE, {"text": f"a proposal of {word}"}, on_consent="hold", purpose=word))
    Invocation.objects.filter(pk=held.pk).update(run_step=step)
    return {
        "conversation_id": talk.pk,
        "playground_decide.consent_id": held.consent_id,
        "talker": playground.agent.wire_id,
    }


def _calls(things: Things) -> dict[str, Any]:
    """One that has ended, and one that waits for a person."""
    by, word = things.people["first"].by, things.word
    given = access.give_grant(
        agent_id=things.caller.agent.pk,
        tools="sample.*",
        reason=word,
        expires_at=GRANTED_UNTIL,
        may_delegate=1,
        by=by,
    )
    handed_on = delegate_grant(
        grant_id=given.pk,
        to_agent_id=things.robot.agent.pk,
        purpose=word,
        expires_at=GRANTED_UNTIL,
        by=things.caller.by,
    )
    done = row_of(things.caller.invoke(ECHO, {"text": word}))
    lost = row_of(things.caller.invoke(ECHO, {"text": word}))
    lost.pk, lost.state, lost.reason = new_id(), "outcome_unknown", "SANDBOX.WORKER_LOST"
    keep_calls(lost)
    held = row_of(
        things.caller.invoke(WRITE, {"text": word}, on_consent="hold", purpose=word, idempotency_key=f"key-of-{word}")
    )
    assert held.consent is not None
    described = DescribedArtifact("report.txt", "text/plain", b"not shown anywhere")
    with transaction.atomic():
        (artifact,) = keep_artifacts(done, [described])
    replay = replay_call(invocation_id=done.pk, reason=f"for {word} a test", by=things.people["first"].by)
    Rerun.objects.create(
        replay=replay, invocation=done, number=1, verdict="match", runs=1, version=word, created_at=replay.created_at
    )
    said = {"recorded": {"text": word}, "replayed": {"text": word}, "differences": []}
    seal_values(
        tenant_id=things.tenant.pk,
        invocation_id=done.pk,
        kind=SnapshotKind.REPLAY,
        number=1,
        value=said,
        key=find_values_key(done),
    )
    steps = [{"id": "write", "tool": WRITE, "arguments": {"text": f"a chain of {word}"}}]
    plan = {"request_id": "test-request-1", "actor": {"type": "agent", "id": word}, "plan": {"steps": steps}}
    chain = things.caller.post("/chains", plan | {"on_consent": "hold", "purpose": word})
    things.also["grant"] = given
    fact = Fact.objects.filter(invocation_id=done.pk).first()
    assert fact is not None
    return {
        "grant_id": given.pk,
        "api_delegation.grant_id": handed_on.pk,
        "invocation_id": done.pk,
        "artifact_id": artifact.pk,
        "replay_id": replay.pk,
        "api_invocation.invocation_id": held.pk,
        "invocation_cancel.invocation_id": held.pk,
        "invocation_resolve.invocation_id": lost.pk,
        "consent_id": held.consent.pk,
        "chain_id": decode("chn", chain.json()["data"]["chain_id"]),
        "run_id": _begin_run(things).pk,
        "fact_id": fact.pk,
        "reason": "AUTH.FORBIDDEN",
    }


def _asked(things: Things) -> dict[str, Any]:
    """A request for a grant, and a consent in force."""
    asked = request_grant(agent_id=things.caller.agent.pk, tools="other.*", purpose=things.word, by=things.caller.by)
    consent = consents.request_consent(
        tool="other.tools.write", versions="^1", purpose=things.word, validity_s=3600, by=things.caller.by
    )
    consents.approve_consent(consent_id=consent.pk, reason=things.word, by=things.people["first"].by)
    things.also["approved"] = consent.wire_id
    return {"request_id": asked.pk}


def _rules(things: Things) -> dict[str, Any]:
    """A policy before, one in force and two drafts, of which one was tried; a budget; a kill switch for a spare agent."""
    first, second, word = things.people["first"].by, things.people["second"].by, things.word
    document = permits({"id": "noted", "effect": "permit", "when": {"agent_name": {"equals": word}}, "note": word})
    drafts = [policies.draft_policy(document=document, note=word, by=first) for _ in range(4)]
    for index, draft in enumerate(drafts[:3]):
        policies.simulate_policy(version_id=draft.pk, by=first)
        if index < 2:
            policies.publish_policy(version_id=draft.pk, reason="It was read.", by=second)
    policies.simulate_policy(version_id=drafts[2].pk, by=first)
    spare = access.create_agent(name="spare", by=first)
    halt = halts.throw_halt(reach=Reach.AGENT, target=spare.wire_id, reason=word, by=things.robot.by)
    budget = set_budget(scope="tenant", dimension="money", amount=10**9, reason=word, by=first)
    key, _ = access.create_key(agent=spare, scopes=["agents:manage"], by=first)
    return {
        "key_id": key.pk,
        "policy_id": drafts[3].pk,
        "policy_publish.policy_id": drafts[2].pk,
        "policy_roll_back.policy_id": drafts[0].pk,
        "kind": "deny",
        "halt_id": halt.pk,
        "budget_id": budget.pk,
    }


def _people(things: Things) -> dict[str, Any]:
    """A key, somebody who was invited, an identity provider, a channel and a callback endpoint with a message to each."""
    by, word = things.people["owner"].by, things.word
    issuer = issuers.trust_issuer(issuer=f"https://{word}.example.org", audience=word, jwks=JWKS, by=by)
    identity = issuers.map_identity(
        issuer_id=issuer.pk, subject=word, agent_id=things.caller.agent.pk, scopes=["tools:read"], by=by
    )
    channel, _ = channels.set_notification(
        channel="email", target=f"{word}@example.org", events=["consent.requested"], by=by
    )
    message = Delivery.objects.create(notification=channel, event="consent.requested", subject=word, body={})
    agent = things.caller.agent
    endpoint, _ = make_endpoint(agent_id=agent.pk, name=word, url=f"https://{word}.example.org/hook", by=by)
    told = CallbackDelivery.objects.create(
        tenant=things.tenant,
        endpoint=endpoint,
        invocation=Invocation.objects.filter(tenant=things.tenant).latest("pk"),
        created_at=datetime.now(UTC),
    )
    _, confirm = preview_erasure(user_id="user-who-left", by=by)
    erasure = erase_subject(user_id="user-who-left", reason=f"{word} wants it so", confirm=confirm, by=by)
    sink, _ = make_sink(name=word, channel="webhook", url=f"https://{word}.example.org/events", by=by)
    invited, _ = invitations.invite_person(username=f"ann-{word}", name="Ann", email="", roles={"developer"}, by=by)
    things.also["identity"] = identity
    entered, _ = enter_client(name=word, redirect_uris=[f"https://{word}.example.org/cb"], confidential=True, by=by)
    connection = make_connection(agent=agent, member=things.people["owner"].user, name=word)
    owner = things.people["owner"]
    account = request_account(resource=f"https://{word}.example.org/mcp", member_id=owner.user.pk, by=by)
    search = save_search(name=word, query="outcome:failed", shared=True, by=by)
    view = save_view(name=word, query="outcome:faulty", by=by)
    return {
        "view_id": view.pk,
        "slug": view.slug,
        "search_id": search.pk,
        "agent_id": things.caller.agent.pk,
        "user_id": invited.pk,
        "issuer_id": issuer.pk,
        "identity_id": identity.pk,
        "connection_id": connection.pk,
        "account_id": account.pk,
        "client_id": entered.pk,
        "notification_id": channel.pk,
        "delivery_id": message.pk,
        "endpoint_id": endpoint.pk,
        "sink_id": sink.pk,
        "erasure_id": erasure.pk,
        "confirmation": preview_erasure(user_id="user-1", by=by)[1],
        "callbacks.delivery_id": told.pk,
    }


def make_publisher() -> Person:
    """A tenant that shares a tool with all others."""
    tenant = access.create_tenant(slug=PUBLISHER, name="Publisher")
    people = {
        "first": make_person(tenant, "paula", Role.OPERATOR),
        "author": make_person(tenant, "paul", Role.DEVELOPER),
    }
    system = Principal.system("test", tenant_id=tenant.pk)
    there = Things(tenant, "for everybody", people, make_caller(system), make_caller(system, "robot"))
    _enable(there, _submit(there, "plans"))
    lifecycle.share_tool(name=OFFERED, reason="for everybody", by=people["first"].by)
    return people["first"]


def send(client: Client, method: str, url: str, data: Any = None, headers: dict[str, str] | None = None) -> Any:
    """A form to the console; JSON to the API, which is who has headers, but bytes as they are."""
    if headers is None:
        return _read(getattr(client, method.lower())(url, data or {}))
    data = data() if callable(data) else data
    body = "" if method == "GET" else data if isinstance(data, bytes) else json.dumps(data or {})
    return _read(client.generic(method, url, body, content_type="application/json", headers=headers))


def _read(answer: Any) -> Any:
    """What a stream tells is read where streams are tested: its looks are in threads, which do not see a test's transaction."""
    return HttpResponse(status=answer.status_code, headers=dict(answer.items())) if answer.streaming else answer


def _write_over(draft: dict[str, Any], word: str) -> dict[str, Any]:
    """The same for every tenant: what a person writes names nothing that is theirs alone."""
    text = re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", json.dumps(draft).replace(word, "a shop"))
    found: dict[str, Any] = json.loads(text)
    return found
