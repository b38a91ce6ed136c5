"""Known sources: servers and services that many want, with drafts that were tried.

An entry is data: which tools are taken, which effect they have and why, what must be said of how it is started. What comes along with
a package of npm is data too, the lines of a lock in ``known_locks``, since a hub resolves nothing of npm. A document is in no hub: the
entry says where its publisher offers it, and a person uploads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext_lazy

from unitools.npm_names import is_of_npm

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


LOCKS = Path(__file__).parent / "known_locks"
# What is said of how a package is started and what it is given, by the names that importing one takes.
OF_START = ("constraints", "arguments", "environment", "script", "keeps", "programs", "trees", "browser")


class EffectChoice(NamedTuple):
    """Another effect than the source proposes, and why."""

    side_effect: str
    safety_class: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """``wanted``: the names of the tools or operations that are taken. ``offered_at``: where the document is to be had."""

    key: str
    title: _StrPromise | str
    about: _StrPromise
    group: str
    wanted: tuple[str, ...]
    effects: dict[str, EffectChoice] = field(default_factory=dict)
    # Of a package.
    package: str = ""
    version: str = ""
    constraints: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    script: str = ""
    keeps: str = ""
    programs: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    browser: bool = False
    asks_hosts: bool = False
    # Of a document.
    offered_at: str = ""
    secrets: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "package" if self.package else "openapi"

    def read_lock(self) -> list[str]:
        """The lines of what comes along with a package of npm; of another none."""
        if not is_of_npm(self.package):
            return []
        return (LOCKS / f"{self.key}.txt").read_text(encoding="utf-8").splitlines()

    @property
    def takes_a_form(self) -> bool:
        """Whether a person has to say something before it is read."""
        return self.kind == "openapi" or self.asks_hosts


_DIRECTORY = "https://github.com/APIs-guru/openapi-directory"
# What takes a person's access token in its body wants it as a secret of the installation, which is for one person: nothing for all.
_PLAID_READS = ("institutionsGet", "institutionsGetById", "institutionsSearch")
_ASKS_BY_POST = EffectChoice("Read", "Low", "It only reads: this service takes all questions by POST.")

KNOWN_SOURCES = (
    KnownSource(
        key="time",
        title=gettext_lazy("Time of day"),
        about=gettext_lazy("The time of now in any time zone, and conversion between two."),
        group="mcp.time",
        package="mcp-server-time",
        version="2026.10.19",
        wanted=("get_current_time", "convert_time"),
    ),
    KnownSource(
        key="calculator",
        title=gettext_lazy("Calculator"),
        about=gettext_lazy("Calculates what an expression comes to."),
        group="mcp.calculator",
        package="mcp-server-calculator",
        version="0.2.1",
        wanted=("calculate",),
        effects={"calculate": EffectChoice("None", "Low", "It calculates, and reaches neither files nor a network.")},
    ),
    KnownSource(
        key="sqlite",
        title="SQLite",
        about=gettext_lazy("Answers queries in SQL on an empty database in memory: nothing is kept between two calls."),
        group="mcp.sqlite",
        package="mcp-server-sqlite",
        version="2025.4.25",
        constraints=("mcp<2",),
        arguments=("--db-path", ":memory:"),
        wanted=("read_query",),
        effects={"read_query": EffectChoice("None", "Low", "Its database is in memory, and gone when the call ends.")},
    ),
    KnownSource(
        key="fetch",
        title=gettext_lazy("Fetch a page"),
        about=gettext_lazy("Fetches a page of a host that you name, and gives its text to the model."),
        group="mcp.fetch",
        package="mcp-server-fetch",
        version="2026.10.24",
        asks_hosts=True,
        wanted=("fetch",),
    ),
    KnownSource(
        key="git",
        title="Git",
        about=gettext_lazy(
            "Reads and changes a repository among the tenant’s files, below /data: status, differences, history, commits."
        ),
        group="mcp.git",
        package="mcp-server-git",
        version="2026.10.19",
        programs=("git",),
        trees=("/data",),
        # The box's folder is of another user than the one that git runs as, and no other repository is there.
        environment=("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"),
        wanted=("git_status", "git_log", "git_show", "git_diff_unstaged", "git_diff_staged", "git_add", "git_commit"),
    ),
    KnownSource(
        key="filesystem",
        title=gettext_lazy("Files"),
        about=gettext_lazy("Reads, searches and changes the tenant’s files below /data, as far as a grant names them."),
        group="mcp.filesystem",
        package="npm:@modelcontextprotocol/server-filesystem",
        version="2026.8.31",
        script="mcp-server-filesystem",
        arguments=("/data",),
        trees=("/data",),
        wanted=("read_text_file", "list_directory", "search_files", "get_file_info", "write_file", "edit_file"),
    ),
    KnownSource(
        key="memory",
        title=gettext_lazy("Memory"),
        about=gettext_lazy("Keeps entities, what was observed of them and how they relate, from one call to the next."),
        group="mcp.memory",
        package="npm:@modelcontextprotocol/server-memory",
        version="2026.8.31",
        script="mcp-server-memory",
        keeps="tenant",
        environment=("MEMORY_FILE_PATH=/data/memory.jsonl",),
        wanted=("create_entities", "create_relations", "add_observations", "read_graph", "search_nodes", "open_nodes"),
    ),
    KnownSource(
        key="excel",
        title="Excel",
        about=gettext_lazy("Makes, fills and reads workbooks that it keeps from one call to the next."),
        group="mcp.excel",
        package="excel-mcp-server",
        version="2.2.2",
        keeps="tenant",
        arguments=("stdio", "--allow-dir", "/data"),
        wanted=("create_workbook", "write_range", "read_range"),
    ),
    KnownSource(
        key="github",
        title="GitHub",
        about=gettext_lazy("Repositories, issues and pull requests: reads them, writes issues and comments."),
        group="service.github",
        offered_at="https://github.com/github/rest-api-description",
        secrets=("GITHUB_TOKEN",),
        wanted=(
            "repos/get",
            "repos/get-content",
            "repos/list-commits",
            "issues/list-for-repo",
            "issues/get",
            "issues/create",
            "issues/list-comments",
            "issues/create-comment",
            "pulls/list",
            "pulls/get",
            "pulls/list-files",
            "search/code",
            "search/issues-and-pull-requests",
        ),
    ),
    KnownSource(
        key="stripe",
        title="Stripe",
        about=gettext_lazy("Customers, charges, invoices and the balance: reads them, and refunds a charge."),
        group="service.stripe",
        offered_at="https://github.com/stripe/openapi",
        secrets=("STRIPE_KEY=bearer",),
        wanted=(
            "GetBalance",
            "GetCustomers",
            "GetCustomersSearch",
            "GetCustomersCustomer",
            "GetCharges",
            "GetChargesCharge",
            "GetInvoices",
            "GetInvoicesInvoice",
            "GetSubscriptions",
            "PostRefunds",
        ),
    ),
    KnownSource(
        key="slack",
        title="Slack",
        about=gettext_lazy("Channels, messages and people: reads them, and posts messages."),
        group="service.slack",
        offered_at="https://github.com/slackapi/slack-api-specs",
        secrets=("SLACK_TOKEN=bearer",),
        wanted=(
            "conversations_list",
            "conversations_info",
            "conversations_history",
            "conversations_replies",
            "users_list",
            "users_info",
            "search_messages",
            "chat_postMessage",
            "reactions_add",
        ),
    ),
    KnownSource(
        key="bitbucket",
        title="Bitbucket",
        about=gettext_lazy("Repositories, issues and pull requests: reads them, and writes issues."),
        group="service.bitbucket",
        offered_at=_DIRECTORY,
        secrets=("BITBUCKET_TOKEN=bearer",),
        wanted=(
            "GET /repositories/{workspace}/{repo_slug}",
            "GET /repositories/{workspace}/{repo_slug}/issues",
            "POST /repositories/{workspace}/{repo_slug}/issues",
            "GET /repositories/{workspace}/{repo_slug}/pullrequests",
        ),
    ),
    KnownSource(
        key="digitalocean",
        title="DigitalOcean",
        about=gettext_lazy("Machines, clusters, databases and domains of an account: only reads them."),
        group="service.digitalocean",
        offered_at="https://github.com/digitalocean/openapi",
        secrets=("DIGITALOCEAN_TOKEN",),
        wanted=(
            "account_get",
            "droplets_list",
            "droplets_get",
            "kubernetes_list_clusters",
            "databases_list_clusters",
            "domains_list",
        ),
    ),
    KnownSource(
        key="box",
        title="Box",
        about=gettext_lazy("Files and folders by their names: finds them, makes folders and comments."),
        group="service.box",
        offered_at="https://github.com/box/box-openapi",
        secrets=("BOX_TOKEN=bearer",),
        wanted=("get_search", "get_folders_id_items", "get_files_id", "get_users_me", "post_folders", "post_comments"),
    ),
    KnownSource(
        key="zoom",
        title="Zoom",
        about=gettext_lazy("People, meetings and recordings: reads them, and makes meetings."),
        group="service.zoom",
        offered_at=_DIRECTORY,
        secrets=("ZOOM_TOKEN=bearer",),
        wanted=("users", "user", "meetings", "meeting", "meetingCreate", "recordingGet"),
    ),
    KnownSource(
        key="plaid",
        title="Plaid",
        about=gettext_lazy("Banks and other institutions that people can connect: only reads them."),
        group="service.plaid",
        offered_at="https://github.com/plaid/plaid-openapi",
        secrets=("PLAID_CLIENT_ID=clientId", "PLAID_SECRET=secret", "PLAID_VERSION=plaidVersion"),
        servers=("https://production.plaid.com",),
        wanted=_PLAID_READS,
        effects=dict.fromkeys(_PLAID_READS, _ASKS_BY_POST),
    ),
)
BY_KEY = {each.key: each for each in KNOWN_SOURCES}
