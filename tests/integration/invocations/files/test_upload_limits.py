"""Upload limits: how large a body does the whole application take, where, and of whom?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import reverse

from invocations.files.body_limits import FORM_BYTES
from invocations.files.services import MAX_FILE_BYTES
from invocations.models import StoredFile
from kernel.http import body_limits
from kernel.http.body_limits import MAX_REQUEST_BYTES
from tests.support.capsules import SOURCE, shouting
from tests.support.sent_bodies import PIECE, Sent
from unitools.capsules import MAX_CAPSULE_BYTES, pack_capsule
from unitools.packages import MAX_PACKAGE_BYTES

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Caller, Person


pytestmark = pytest.mark.django_db(transaction=True)
LARGE = b"x" * (MAX_REQUEST_BYTES + 1)
LARGEST = b"x" * MAX_FILE_BYTES


def address(name: str = "june.csv") -> str:
    return reverse("api_file", args=[name])


def form(client: Client, content: bytes) -> tuple[bytes, dict[str, str]]:
    """What a browser sends for the form of the page, with the cookies of its session."""
    client.get(reverse("files"))
    token = client.cookies[settings.CSRF_COOKIE_NAME].value
    fields = {
        "csrfmiddlewaretoken": token,
        "path": "/data/june.csv",
        "upload": SimpleUploadedFile("june.csv", content),
    }
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    return encode_multipart(BOUNDARY, fields), {"content-type": MULTIPART_CONTENT, "cookie": cookies}


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("announced", [True, False])
def test_a_file_of_the_largest_size_is_stored_over_rest(caller: Caller, announced: bool) -> None:
    sent = Sent("PUT", address(), LARGEST, caller.headers(), announced=announced).now()

    assert sent.status == 201, sent.content
    assert StoredFile.objects.get().size == MAX_FILE_BYTES


def test_a_large_capsule_is_taken_and_one_that_is_too_large_is_not(caller: Caller) -> None:
    files = {"acme_voice/main.py": SOURCE.encode(), "acme_voice/data": bytes(MAX_PACKAGE_BYTES - 1000)}
    large = pack_capsule([shouting()], files).data

    sent = Sent("POST", "/api/v1/capsules", large, caller.headers()).now()
    more = Sent("POST", "/api/v1/capsules", bytes(MAX_CAPSULE_BYTES + 1), caller.headers()).now()

    assert sent.status == 201, sent.content
    assert (more.status, more.error["reason"]) == (413, "REQUEST.TOO_LARGE")


def test_a_file_of_the_largest_size_is_stored_in_the_console(operator: Person) -> None:
    body, headers = form(operator.client(), LARGEST)

    sent = Sent("POST", reverse("files"), body, headers).now()

    assert sent.status == 302, sent.content
    assert StoredFile.objects.get().size == MAX_FILE_BYTES


@pytest.mark.parametrize("announced", [True, False])
def test_one_byte_more_is_refused_with_the_limit(caller: Caller, announced: bool) -> None:
    sent = Sent("PUT", address(), LARGEST + b"x", caller.headers(), announced=announced).now()

    assert sent.status == 413
    assert sent.error["reason"] == "REQUEST.TOO_LARGE"
    assert "16,777,216 bytes" in sent.error["message"]
    assert not StoredFile.objects.exists()


def test_one_byte_more_is_refused_by_the_form_with_the_limit(operator: Person) -> None:
    body, headers = form(operator.client(), LARGEST + b"x")

    sent = Sent("POST", reverse("files"), body, headers).now()

    assert sent.status == 422
    assert b"16,777,216 bytes" in sent.content
    assert not StoredFile.objects.exists()


def test_a_form_that_can_hold_no_file_that_is_small_enough_is_not_read(operator: Person) -> None:
    body, headers = form(operator.client(), LARGEST + b"x" * FORM_BYTES)

    sent = Sent("POST", reverse("files"), body, headers).now()

    assert (sent.status, sent.taken) == (413, 0)
    assert sent.error["details"] == {"max_bytes": MAX_FILE_BYTES + FORM_BYTES}


@pytest.mark.parametrize(("method", "name"), [("PUT", "api_file"), ("POST", "files")])
@pytest.mark.parametrize("announced", [True, False])
def test_of_a_stranger_no_more_is_taken_there_than_elsewhere(
    method: str, name: str, announced: bool, tenant: object
) -> None:
    path = address() if name == "api_file" else reverse(name)
    strange = {"authorization": "Bearer hub_nobody", "cookie": f"{settings.SESSION_COOKIE_NAME}=" + "a" * 32}

    sent = Sent(method, path, LARGEST, strange, announced=announced).now()

    assert sent.status == 401
    assert sent.error["reason"] == "AUTH.UNAUTHENTICATED"
    assert sent.taken == (0 if announced else len(LARGE) // PIECE + 1)


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/files/a"),
        ("PUT", "/files"),
        ("POST", "/api/v1/tools"),
        ("POST", "/files/take/a"),
        ("POST", "/"),
    ],
)
def test_other_routes_take_no_more_of_anybody(caller: Caller, method: str, path: str, announced: bool) -> None:
    sent = Sent(method, path, LARGE, caller.headers(), announced=announced).now()

    assert sent.status == 413
    assert sent.error["details"] == {"max_bytes": MAX_REQUEST_BYTES}


def test_a_sender_has_only_a_few_large_bodies_under_way_and_gets_the_room_back(
    caller: Caller, foreign_caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "AT_ONCE", 1)
    first = Sent("PUT", address("first"), LARGE, caller.headers())
    second = Sent("PUT", address("second"), LARGE, caller.headers())
    small = Sent("PUT", address("small"), b"x", caller.headers())
    of_another = Sent("PUT", address("another"), LARGE, foreign_caller.headers())

    async def meanwhile() -> None:
        for each in (second, small, of_another):
            await each.go()

    first.midway = meanwhile
    first.now()

    assert (first.status, small.status, of_another.status) == (201, 201, 201)
    assert (second.status, second.taken) == (429, 0)
    assert second.error["reason"] == "REQUEST.TOO_MANY"
    assert Sent("PUT", address("second"), LARGE, caller.headers()).now().status == 201
