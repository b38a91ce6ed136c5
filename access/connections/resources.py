"""Resources: the addresses of the hub that tokens are for (RFC 8707), and how a client names one.

Tokens of connections are for one of two: the MCP endpoint, which is what a client means that says nothing, and the hub as a whole with
its REST API. A tenant may have an MCP address of its own beside them, for tokens of an identity provider of its own alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

MCP_PATH = "/mcp"


def hub_resource() -> str:
    return str(settings.TOOLHUB_PUBLIC_URL)


def mcp_resource() -> str:
    return hub_resource() + MCP_PATH


def tenant_mcp_resource(slug: str) -> str:
    """The tenant's own, whether it uses it or not."""
    return f"{mcp_resource()}/{slug}"


def is_of_tenant(resource: str) -> bool:
    return resource.startswith(f"{mcp_resource()}/")


def normalize_resource(text: str) -> str:
    """In lower case where that means nothing, and without the slash that some clients add."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return text
    if parts.username is not None or parts.password is not None or "#" in text or "?" in text or not parts.hostname:
        return text
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.lower()
    named = port is not None and port != {"http": 80, "https": 443}.get(parts.scheme.lower())
    return f"{parts.scheme.lower()}://{host}{f':{port}' if named else ''}{parts.path.rstrip('/')}"


def find_resource(asked: list[str]) -> str | None:
    """The one that is meant; None for anything that is not the hub's, and for more than one."""
    if not asked:
        return mcp_resource()
    names = {normalize_resource(each) for each in asked}
    if len(names) != 1:
        return None
    return next((each for each in (mcp_resource(), hub_resource()) if normalize_resource(each) in names), None)


def covers_resource(granted: str, asked: str) -> bool:
    """A token for the hub as a whole is good for its parts; one for a part is for nothing else."""
    return granted in (asked, hub_resource())
