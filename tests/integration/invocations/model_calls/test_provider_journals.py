"""Provider journals: what does a real server of each wire get of a call, and what of its failures does a caller hear?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from invocations.files.services import store_file
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from registry.secrets.services import set_secret
from tests.support.calls import row_of
from tests.support.drawn_pictures import draw
from tests.support.model_calls import ask, say
from tests.support.model_servers import Reply, model_server
from tests.support.provider_wires import ALL_WIRES, build_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.model_servers import ModelServer
    from tests.support.provider_wires import Wire

pytestmark = pytest.mark.django_db

EMAIL, CANARY, KEY = "ann@example.org", "quokkaprompt", "sk-quokkakey-0123456789"
PNG = draw("PNG", 1, 1)
FAILURES = [400, 401, 404, 413, 429, 500, 503]


@pytest.fixture
def connect(operator: Person, grant: Callable[..., Any], settings: Any) -> Callable[..., str]:
    """``connect(wire, server)``: the id of its model, of a provider that may be sent no data of any class."""
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    grant("model.*")
    set_secret(name="wire.key", value=KEY, by=operator.by)

    def make(wire: Wire, server: ModelServer) -> str:
        terms: dict[str, Any] = {
            "kind": wire.kind,
            "address": f"{server.url}/v1",
            "secret": "wire.key",
            "settings": {"retries": 0},
        }
        connect_provider(name="wire", reason="for a test", by=operator.by, **terms)
        terms = {"model": wire.model, "unpriced": "count"}
        connect_model(provider="wire", alias="main", reason="for a test", by=operator.by, **terms)
        return "model.wire.main"

    return make


@pytest.mark.req("LLM-2", "LLM-4")
@pytest.mark.parametrize("name", ALL_WIRES)
def test_a_provider_gets_masked_texts_and_the_bytes_of_pictures(
    caller: Caller, operator: Person, connect: Callable[..., str], name: str
) -> None:
    row, _ = store_file(path="/data/picture", content=PNG, by=operator.by)
    picture = {"type": "image_ref", "id": row.wire_id, "media_type": "image/png", "size_bytes": len(PNG)}
    texts = {"type": "text", "text": f"Write to {EMAIL}."}
    messages = [{"role": "user", "segments": [texts, picture | {"width": 1, "height": 1}]}]
    events = Reply(build_events(ALL_WIRES[name], calls=False), content_type="text/event-stream")

    with model_server(events) as server:
        answer = ask(caller, {"messages": messages}, model=connect(ALL_WIRES[name], server))

    assert answer.status_code == 200, answer.content
    [heard] = server.heard
    body = json.dumps(json.loads(heard.body))
    assert EMAIL not in body
    assert "[redacted:email 1]" in body
    assert base64.b64encode(PNG).decode() in body
    assert row.wire_id not in body


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("name", ALL_WIRES)
def test_no_failure_of_a_provider_quotes_a_prompt_or_a_key_to_a_caller(
    caller: Caller, connect: Callable[..., str], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = f"You wrote {CANARY}, and your key {KEY} is wrong."
    error = {"error": {"message": said, "type": CANARY, "code": CANARY, "status": CANARY, "param": said}}
    replies = [Reply([json.dumps(error).encode()], status) for status in FAILURES]
    replies += [Reply([said.encode()], 502, content_type="text/html")]
    replies += [Reply([f"data: {json.dumps(error)}\n\n".encode()], content_type="text/event-stream")]
    asked = iter(replies)

    with model_server(lambda _: next(asked)) as server:
        model = connect(ALL_WIRES[name], server)
        answers = [ask(caller, say(f"The question: {CANARY}"), model=model) for _ in replies]

    assert len(server.heard) == len(replies)
    assert all(each.status_code >= 400 for each in answers)
    for each in answers:
        told = each.content.decode()
        assert (CANARY in told, "quokkakey" in told) == (False, False)
        assert row_of(each).reason == each.json()["error"]["reason"]
    assert (CANARY in caplog.text, "quokkakey" in caplog.text) == (False, False)
