"""HTTP client: is a provider asked at its own address only, within bounds, and is every failure of it a problem?"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kernel.problems import Problem, SchemaInvalid
from llm.problems import (
    ModelTimedOut,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.providers import http_client
from llm.providers.http_client import AllowedAddresses, Exchange, HttpClient, TimeLimits, read_events
from tests.support.model_servers import ModelServer, Reply, event_reply, json_reply, served_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.http_server import Heard


LOOPBACK = AllowedAddresses(("127.0.0.0/8",))
SHORT = TimeLimits(connect_s=5, first_event_s=0.05, idle_s=0.05, total_s=5)
CANARY = "sk-canary my secret prompt"


def ask(replies: list[Reply], work: Callable[[HttpClient, ModelServer], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with served_here(*replies) as server:
            client = HttpClient(f"{server.url}/v1", **{"check_address": LOOPBACK, **options})
            try:
                return await work(client, server)
            finally:
                await client.aclose()

    return anyio.run(run)


async def read_all(client: HttpClient, server: ModelServer) -> list[str]:
    async with client.open_stream("chat", body={"a": 1}) as response:
        return [each async for each in read_events(response)]


async def fetch(client: HttpClient, server: ModelServer) -> Any:
    return await client.fetch_json("models", body={"a": 1})


def refuse(replies: list[Reply], work: Any = read_all, **options: Any) -> Problem:
    with pytest.raises(Problem) as refused:
        ask(replies, work, **options)
    return refused.value


@pytest.mark.req("LLM-9")
def test_events_arrive_however_their_bytes_were_cut_and_the_request_is_as_it_was_given() -> None:
    whole = ': hello\n\nevent: x\ndata: {"a": "中"}\n\ndata: one\ndata: two\n\ndata: [DONE]\n\n'.encode()

    async def work(client: HttpClient, server: ModelServer) -> list[str]:
        events = await read_all(client, server)
        (asked,) = server.heard
        assert (asked.method, asked.path, asked.document) == ("POST", "/v1/chat", {"a": 1})
        assert asked.headers["authorization"] == "Bearer k"
        assert asked.headers["accept-encoding"] == "identity"
        assert asked.headers["host"] in server.url
        return events

    events = ask([event_reply(*(bytes([each]) for each in whole))], work, headers={"authorization": "Bearer k"})

    assert events == ['{"a": "中"}', "one\ntwo", "[DONE]"]


@pytest.mark.req("LLM-9")
def test_one_connection_serves_many_requests() -> None:
    async def work(client: HttpClient, server: ModelServer) -> int:
        for _ in range(3):
            await fetch(client, server)
        return len({id(client.get_pool())})

    assert ask([json_reply({"ok": True})], work) == 1


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("scheme", "host", "networks"),
    [
        ("https", "127.0.0.1", ()),
        ("https", "169.254.169.254", ()),
        ("https", "::ffff:10.0.0.1", ()),
        ("https", "localhost", ()),
        ("http", "8.8.8.8", ("10.0.0.0/8",)),
    ],
)
def test_a_private_address_is_refused_unless_its_network_was_named(
    scheme: str, host: str, networks: tuple[str, ...]
) -> None:
    with pytest.raises(ProviderUnavailable):
        anyio.run(AllowedAddresses(networks), scheme, host, 443)


@pytest.mark.req("LLM-9")
def test_a_host_is_looked_up_again_after_some_seconds_and_what_is_refused_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    means, clock = ["93.184.216.34"], [100.0]

    async def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(None, None, 0, "", (means[0], port))]

    monkeypatch.setattr(anyio, "getaddrinfo", look_up)
    monkeypatch.setattr(http_client, "monotonic", lambda: clock[0])
    check = AllowedAddresses()

    async def story() -> list[tuple[str, ...]]:
        found = [await check("https", "models.example", 443) for _ in range(3)]
        assert len(asked) == 1
        clock[0] += http_client.LOOKED_UP_S
        means[0] = "10.0.0.1"
        for _ in range(2):
            with pytest.raises(ProviderUnavailable):
                await check("https", "models.example", 443)
        return found

    assert anyio.run(story) == [("93.184.216.34",)] * 3
    assert len(asked) == 3


@pytest.mark.req("LLM-9")
def test_nothing_is_sent_to_an_address_that_is_not_allowed() -> None:
    async def work(client: HttpClient, server: ModelServer) -> int:
        with pytest.raises(ProviderUnavailable):
            await fetch(client, server)
        return len(server.heard)

    assert ask([Reply()], work, check_address=AllowedAddresses()) == 0


@pytest.mark.req("LLM-9")
def test_the_connection_goes_to_the_address_that_was_checked_and_names_the_host() -> None:
    seen: list[tuple[str, str, int]] = []

    async def check(scheme: str, host: str, port: int) -> tuple[str, ...]:
        seen.append((scheme, host, port))
        return ("127.0.0.2", "127.0.0.1")  # nobody listens at the first

    async def run() -> None:
        async with served_here(json_reply({"ok": True})) as server:
            port = int(server.url.rpartition(":")[2])
            client = HttpClient(f"http://models.example:{port}/v1", check_address=check)
            assert await client.fetch_json("models") == {"ok": True}
            assert server.heard[0].headers["host"] == f"models.example:{port}"
            assert seen == [("http", "models.example", port)]
            await client.aclose()

    anyio.run(run)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's side of TLS, whose certificate names models.example, and that of a client that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "models.example")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    named = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("models.example")]), critical=False)
    certificate = named.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(certificate + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=certificate.decode())


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("host", "trusted"), [("models.example", True), ("other.example", False)])
def test_the_certificate_must_name_the_host_though_the_connection_goes_to_an_address(
    certified: tuple[ssl.SSLContext, ssl.SSLContext], host: str, trusted: bool
) -> None:
    async def check(scheme: str, host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    async def run() -> list[Heard]:
        async with served_here(json_reply({"ok": True}), tls=certified[0]) as server:
            port = server.url.rpartition(":")[2]
            client = HttpClient(f"https://{host}:{port}/v1", check_address=check, tls=certified[1])
            if trusted:
                assert await client.fetch_json("models") == {"ok": True}
            else:
                with pytest.raises(ProviderUnavailable):
                    await client.fetch_json("models")
            await client.aclose()
            return server.heard

    assert bool(anyio.run(run)) is trusted


@pytest.mark.req("LLM-9")
def test_a_redirect_is_not_followed_and_no_other_host_is_asked() -> None:
    redirect = Reply(status=307, headers={"location": "http://127.0.0.1:1/stolen"})
    assert isinstance(refuse([redirect]), ProviderAnswerUnreadable)

    async def elsewhere(client: HttpClient, server: ModelServer) -> None:
        exchange = Exchange(client)
        with pytest.raises(ProviderUnavailable):
            await client.build_client(exchange).get("http://127.0.0.1:1/other")
        assert isinstance(exchange.problem, ProviderUnavailable)

    ask([Reply()], elsewhere)


@pytest.mark.req("LLM-9")
def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert ask([json_reply({"ok": True})], fetch) == {"ok": True}


@pytest.mark.req("LLM-9")
def test_a_proxy_that_is_configured_is_asked_instead() -> None:
    async def work(client: HttpClient, server: ModelServer) -> str:
        through = HttpClient("http://models.example/v1", proxy=server.url)
        await through.fetch_json("models")
        await through.aclose()
        return server.heard[0].path

    assert ask([json_reply({"ok": True})], work) == "http://models.example/v1/models"


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "url", ["ftp://a/v1", "https://", "https://u:p@a/v1", "https://a/v1?key=1", "https://a/#x", "a"]
)
def test_an_address_that_is_none_of_a_provider_is_refused_when_it_is_configured(url: str) -> None:
    with pytest.raises(SchemaInvalid):
        HttpClient(url)


DATA = b"data: x\n\n"


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (event_reply(DATA, end="cut"), StreamTruncated),
        (event_reply(end="cut"), StreamTruncated),
        (event_reply(DATA, end="stall"), ModelTimedOut),
        (event_reply(end="stall"), ModelTimedOut),
        (Reply([b"<html>"], content_type="text/html"), ProviderAnswerUnreadable),
        (json_reply({"id": 1}), ProviderAnswerUnreadable),
        (json_reply({"error": {"type": "overloaded_error", "message": CANARY}}), ProviderUnavailable),
        (event_reply(DATA, headers={"content-encoding": "gzip"}), ProviderAnswerUnreadable),
        (json_reply({"error": {"message": CANARY}}, 401), ProviderKeyRefused),
        (Reply([CANARY.encode()], 500, end="stall"), ProviderUnavailable),
        (Reply([CANARY.encode()], 500, end="cut"), ProviderUnavailable),
    ],
)  # fmt: skip
def test_a_stream_that_goes_wrong_is_a_problem_that_quotes_nothing(reply: Reply, problem: type[Problem]) -> None:
    refused = refuse([reply], limits=SHORT)

    assert type(refused) is problem
    assert "canary" not in str(refused.to_error())
    assert "secret" not in str(refused.to_error())


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply([b"{"]), ProviderAnswerUnreadable),
        (Reply([b"<html>"], content_type="text/html"), ProviderAnswerUnreadable),
        (json_reply({"error": {"message": CANARY, "type": "server_error"}}), ProviderUnavailable),
        (json_reply({"error": "slow down"}, 429), ProviderRateLimited),
        (Reply([b"[" * 100_000]), ProviderAnswerUnreadable),
    ],
)
def test_a_whole_answer_that_goes_wrong_is_a_problem(reply: Reply, problem: type[Problem]) -> None:
    assert type(refuse([reply], fetch)) is problem


@pytest.mark.req("LLM-9")
def test_all_of_it_together_takes_no_longer_than_the_limit() -> None:
    assert isinstance(refuse([event_reply(DATA, end="stall")], limits=TimeLimits(total_s=0.05)), ModelTimedOut)


@pytest.mark.req("LLM-9")
def test_an_answer_that_is_too_large_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_ANSWER_BYTES", 100)

    assert isinstance(refuse([event_reply(*[b"x" * 60] * 2)]), ProviderAnswerUnreadable)


@pytest.mark.req("LLM-9")
def test_nobody_at_the_address_is_a_problem() -> None:
    async def work(client: HttpClient, server: ModelServer) -> None:
        nobody = HttpClient("http://127.0.0.1:1", check_address=LOOPBACK)
        with pytest.raises(ProviderUnavailable):
            await nobody.fetch_json("models")
        await nobody.aclose()

    ask([Reply()], work)


@pytest.mark.req("LLM-9")
def test_leaving_a_stream_ends_the_request_of_the_provider() -> None:
    async def work(client: HttpClient, server: ModelServer) -> None:
        async with client.open_stream("chat", body={}) as response:
            async for _ in response.aiter_bytes():
                break
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(server.left.wait)

    ask([event_reply(DATA, end="stall")], work)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("ends", [False, True])
def test_a_watch_sees_every_byte_and_decides_whether_the_stream_has_come_to_its_end(ends: bool) -> None:
    class Watch:
        seen = b""

        def feed(self, data: bytes) -> None:
            self.seen += data

        def finish(self) -> None:
            if not ends:
                raise StreamTruncated

    watch = Watch()

    async def work(client: HttpClient, server: ModelServer) -> list[str]:
        async with client.open_stream("chat", body={}, watch=watch) as response:
            return [each async for each in read_events(response)]

    if ends:
        assert ask([event_reply(DATA, DATA)], work) == ["x", "x"]
    else:
        assert isinstance(refuse([event_reply(DATA, DATA)], work), StreamTruncated)
    assert watch.seen == DATA + DATA
