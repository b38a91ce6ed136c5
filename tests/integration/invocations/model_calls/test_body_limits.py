"""Body limits: how large a request to a model does the whole application take, and of whom?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from kernel.http.body_limits import MAX_REQUEST_BYTES
from kernel.http.parsers import MAX_WIDE_BYTES
from tests.support.drawn_pictures import draw, to_data_url
from tests.support.model_calls import MODEL, build_body
from tests.support.sent_bodies import Sent

if TYPE_CHECKING:
    from registry.models import Tool
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"content-type": "application/json"}
DOORS = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]
DOORS += [f"/{version}/models/{MODEL}:generateContent" for version in ("v1", "v1beta")]
DOORS += [f"/v1beta/models/{MODEL}:{verb}" for verb in ("streamGenerateContent", "countTokens")]


def see(url: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "segments": [{"type": "image_ref", "data": url}]}]}


@pytest.mark.req("LLM-2")
def test_a_picture_of_10_mib_is_taken_by_the_models_own_address(caller: Caller, model: Tool) -> None:
    picture = draw() + bytes(10 * 1024 * 1024 - len(draw()))
    body = json.dumps(build_body(caller, see(to_data_url(picture)))).encode()

    sent = Sent("POST", f"/api/v1/models/{MODEL}/chat", body, JSON | caller.headers()).now()

    assert sent.status == 200, sent.content
    assert Invocation.objects.get().state == "succeeded"


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("path", [f"/api/v1/models/{MODEL}/chat", f"/api/v1/models/{MODEL}/preflight", *DOORS])
def test_one_of_30_mb_is_refused_before_it_is_read(path: str, caller: Caller, model: Tool) -> None:
    sent = Sent("POST", path, b"x" * 30_000_000, JSON | caller.headers()).now()

    assert (sent.status, sent.taken) == (413, 0)
    assert f"{MAX_WIDE_BYTES:,} bytes" in sent.error["message"]


@pytest.mark.req("LLM-2")
def test_anthropics_clients_may_send_theirs_by_their_own_header(caller: Caller, model: Tool) -> None:
    body = b"[" + b" " * MAX_REQUEST_BYTES + b"]"

    known = Sent("POST", "/v1/messages", body, JSON | {"x-api-key": caller.key}).now()
    strange = Sent("POST", "/v1/messages", body, JSON | {"x-api-key": "hub_nobody"}).now()

    assert known.status == 413  # by whoever reads it: it has no picture
    assert known.taken > 0
    assert (strange.status, strange.taken) == (401, 0)


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/models", f"/api/v1/models/{MODEL}/embed"])
def test_other_addresses_of_models_take_no_more_than_elsewhere(path: str, caller: Caller, model: Tool) -> None:
    sent = Sent("POST", path, b"x" * (MAX_REQUEST_BYTES + 1), JSON | caller.headers()).now()

    assert (sent.status, sent.taken) == (413, 0)
    assert f"{MAX_REQUEST_BYTES:,} bytes" in sent.error["message"]
