"""Standard Webhooks: does that project's own library accept what the hub signs, and nothing else?"""

from __future__ import annotations

import base64
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from evidence.deliveries.signed_requests import SignedRequest
from evidence.deliveries.signing_secrets import SECRET_PREFIX
from scripts.provision import peers
from tests.support.http_server import local_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.http_server import Heard

# The library raises for what is wrong; it answers with the message.
CHECK = """
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
for secret, body, headers in json.load(sys.stdin):
    try:
        Webhook(secret).verify(body, headers)
        print("accepted")
    except WebhookVerificationError:
        print("refused")
"""
OLD, NEW, OTHER = (bytes([number]) * 32 for number in range(3))
BODY = b'{"type": "invocation.ended", "data": {"text": "\xc3\xa9.\xe4\xb8\xad"}}'


def text_of(secret: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def ask_library(tasks: Sequence[tuple[bytes, bytes, dict[str, str]]]) -> list[str]:
    said = json.dumps([(text_of(secret), body.decode(), headers) for secret, body, headers in tasks])
    words = [str(peers.ensure_python("webhooks")), "-c", CHECK]
    done = subprocess.run(words, input=said, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


@pytest.fixture
def heard(settings: Any) -> Heard:
    """A message as it arrives, signed with two secrets while one takes over from the other."""
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as server:
        assert SignedRequest(f"{server.url}/hook", "cbd_01jd", BODY, [NEW, OLD]).send() == 200
        [found] = server.heard
    return found


@pytest.mark.req("CONN-6")
def test_the_library_accepts_the_message_by_either_secret_and_no_changed_one(heard: Heard) -> None:
    headers = heard.headers

    assert heard.body == BODY
    assert ask_library([(NEW, BODY, headers), (OLD, BODY, headers)]) == ["accepted"] * 2
    changed = [
        (OTHER, BODY, headers),
        (NEW, BODY + b" ", headers),
        (NEW, BODY, headers | {"webhook-id": "cbd_01je"}),
        (NEW, BODY, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
        (NEW, BODY, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 3600)}),
    ]
    assert ask_library(changed) == ["refused"] * len(changed)


def test_no_message_has_a_full_stop_in_its_id() -> None:
    with pytest.raises(AssertionError):
        SignedRequest("https://hooks.example.org", "snk_1.fct_2", BODY, [NEW])
