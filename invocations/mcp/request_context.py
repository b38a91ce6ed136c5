"""Request context: who sends an MCP message, with which client, and in which session.

The door (:mod:`invocations.mcp.endpoint`) finds it out and puts it into the scope of the request; the handlers read it from there.
A session is nothing that the hub keeps: its id is what the client said of itself in `initialize`, signed, so that any web process
can read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.core import signing
from mcp import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY

from invocations.mcp.errors import error_of
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for, acting_for_nobody
from kernel.http.exception_handlers import translate_exception
from kernel.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mcp.server.context import ServerRequestContext

    from access.authentication.known_keys import ReadAhead
    from invocations.mcp.list_watch import ListWatch
    from invocations.mcp.posted_answers import PostedAnswer
    from invocations.stopped_streams import StreamTopic
    from kernel.http.deferred_responses import InThread
    from kernel.principal import Principal
    from kernel.problems import Problem

    T = TypeVar("T")

SCOPE_KEY = "toolhub.mcp"
TASKS = "io.modelcontextprotocol/tasks"  # the extension of 2026-07-28
SALT = "toolhub.mcp.session"
LIFETIME_S = 30 * 24 * 3600
MAX_SESSION_ID = 4096
MAX_WORD = 40


@dataclass(frozen=True, slots=True)
class McpSession:
    """What `initialize` said: the client's name and version, and which of its capabilities the hub makes use of."""

    id: str = ""
    app: str = ""
    version: str = ""
    asks_by_url: bool = False
    asks_by_form: bool = False

    @classmethod
    def begin(cls, params: Any) -> McpSession:
        said = params if isinstance(params, dict) else {}
        app, version = _named(said.get("clientInfo"))
        capable = said.get("capabilities")
        return cls(new_id().hex, app, version, supports_url_elicitation(capable), supports_form_elicitation(capable))

    def sealed_for(self, by: Principal) -> str:
        """The session's id on the wire: printable ASCII, for this agent only."""
        said = {
            "i": self.id,
            "a": self.app,
            "v": self.version,
            "u": self.asks_by_url,
            "f": self.asks_by_form,
            "p": by.id,
        }
        return signing.dumps(said, salt=SALT, compress=True)

    @classmethod
    def opened(cls, text: str) -> tuple[McpSession, str] | None:
        """With the id of the agent that it was given out to; None for what the hub has not given out, or too long ago."""
        try:
            said = signing.loads(text[:MAX_SESSION_ID], salt=SALT, max_age=LIFETIME_S)
        except signing.BadSignature:
            return None
        return cls(said["i"], said["a"], said["v"], said["u"], said.get("f", False)), said["p"]


def _named(client: Any) -> tuple[str, str]:
    said = client if isinstance(client, dict) else {}
    return _word(said.get("name", "")), _word(said.get("version", ""))


def _word(said: Any) -> str:
    """Who decides on a call reads it: signs that break lines, turn the direction of what follows or are not seen are left out."""
    return "".join(sign for sign in str(said)[:MAX_WORD] if sign.isprintable()).strip()


def supports_url_elicitation(capabilities: Any) -> bool:
    """Whether the client shows its user an address and says when the user has been there."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and isinstance(elicitation.get("url"), dict)


def supports_form_elicitation(capabilities: Any) -> bool:
    """Whether the client shows its user a form. One that says no more than that it asks has forms: addresses came later."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and (isinstance(elicitation.get("form"), dict) or "url" not in elicitation)


def supports_tasks(capabilities: dict[str, Any]) -> bool:
    return TASKS in (capabilities.get("extensions") or {})


class CallerRefused(Exception):
    """Who has sent a message may not speak here. This is no answer to the message: it is said in HTTP."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)


@dataclass(slots=True)
class McpRequest:
    """One message at the door. ``in_thread`` does what needs the database, in the threads that requests share; ``topic``: what its
    answer is about, for whoever ends it.

    ``caller``: None where nobody has asked yet whose it is. Then ``find_caller`` is asked, in the first thread that works on it; it
    raises :class:`CallerRefused`.
    """

    caller: Principal | None
    in_thread: InThread
    lists: ListWatch
    answer: PostedAnswer
    session: McpSession = field(default_factory=McpSession)
    topic: StreamTopic | None = None
    find_caller: Callable[[ReadAhead | None], Principal] | None = None

    @property
    def by(self) -> Principal:
        assert self.caller is not None
        return self.caller

    def _identify(self, ahead: ReadAhead | None) -> None:
        if self.caller is None:
            assert self.find_caller is not None
            with acting_for_nobody():
                self.caller = self.find_caller(ahead)

    async def within(self, work: Callable[[], T], *, ahead: ReadAhead | None = None) -> T:
        """Work for this agent's tenant in a thread, whose connection is given back at the end. What it raises is an MCP error, in
        the words of the catalogue. ``ahead``: what is asked together with the agent's key, where that is asked now.
        """

        def scoped() -> T:
            try:
                self._identify(ahead)
                with acting_for(self.by.tenant_id):
                    return work()
            except (MCPError, CallerRefused):
                raise
            except Exception as error:
                raise error_of(translate_exception(error)) from error
            finally:
                release_connection()

        found: T = await self.in_thread(scoped)
        return found


def get_mcp_request(context: ServerRequestContext[Any, Any]) -> McpRequest:
    assert context.request is not None
    found: McpRequest = context.request.scope[SCOPE_KEY]
    return found


def read_client(context: ServerRequestContext[Any, Any]) -> tuple[str, str]:
    """Name and version of the client: of its session, or of the message itself (2026-07-28); empty where it says nothing."""
    session = get_mcp_request(context).session
    if session.app:
        return session.app, session.version
    return _named((context.meta or {}).get(CLIENT_INFO_META_KEY))


def read_client_capabilities(context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """What a client of 2026-07-28 says that it can do, with each message; its shape was checked by the SDK."""
    meta: dict[str, Any] = dict(context.meta or {})
    return dict(meta.get(CLIENT_CAPABILITIES_META_KEY) or {})
