"""Redirect URIs: where the answer to an authorization may be sent.

One function decides, when a program registers, when its document is read and when it asks: one that registers and is refused
afterwards would fail in front of a person who can do nothing about it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

MAX_URIS = 10
MAX_URI = 500
MAX_HOST = 253
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Programs on a person's computer that are opened by a scheme of their own. The same stand in the settings of django-oauth-toolkit,
# which asks for them when it keeps a document, and can be told no rule: schemes that name a domain (RFC 8252 §7.1) are not among them.
APP_SCHEMES = ("cursor", "vscode", "vscode-insiders", "windsurf")
# A host gets into a page's policy (:func:`form_action_source`), where other characters have a meaning.
_NETLOC = re.compile(r"([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
# What the function below takes, as a pattern for the OpenAPI document: but for names that are too long, and high ports.
_HOST = "[A-Za-z0-9-]{1,60}([.][A-Za-z0-9-]{1,60}){0,3}"
_PORT = "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
_SEEN = r'[!"$-\[\]-~]'
URI_PATTERN = (
    rf"^(https://{_HOST}{_PORT}([/?]{_SEEN}*)?|http://(127[.]0[.]0[.]1|localhost|\[::1\]){_PORT}([/?]{_SEEN}*)?"
    rf"|({'|'.join(APP_SCHEMES)}):/(/{_HOST}{_PORT}(/{_SEEN}*)?)?)$"
)


class RedirectRefused(ValueError):
    """Why an answer is not sent there, in a sentence."""


def check_redirect_uri(uri: str) -> None:
    if not uri.isascii() or len(uri) > MAX_URI or any(ord(letter) <= 32 or ord(letter) == 127 for letter in uri):
        raise RedirectRefused("A redirect URI is at most 500 visible ASCII characters.")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise RedirectRefused("This redirect URI cannot be read.") from error
    if "#" in uri or "@" in parts.netloc or "\\" in uri or "*" in parts.netloc:
        raise RedirectRefused("A redirect URI has no fragment, no user name and no wildcard.")
    if len(parts.hostname or "") > MAX_HOST:
        raise RedirectRefused("The name of this host is too long.")
    if parts.netloc and not _NETLOC.fullmatch(parts.netloc):
        raise RedirectRefused("The host of a redirect URI has letters, digits, dots and hyphens.")
    scheme = uri.partition(":")[0]
    if scheme == "https" and parts.hostname:
        return
    if scheme == "http" and parts.hostname in LOOPBACK:
        return
    if scheme in APP_SCHEMES and uri.startswith(f"{scheme}:/"):
        return
    raise RedirectRefused(
        "A redirect URI begins with https://, with http://127.0.0.1, http://[::1] or http://localhost, or with the scheme of a known "
        "application."
    )


def check_redirect_uris(uris: object) -> list[str]:
    """Those of one program: all are good, or it is refused as a whole."""
    if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_URIS or not all(isinstance(each, str) for each in uris):
        raise RedirectRefused(f"Name 1 to {MAX_URIS} redirect URIs.")
    for each in uris:
        check_redirect_uri(each)
    return list(uris)


def is_on_this_computer(uri: str) -> bool:
    """Whether any program there can take the answer: nobody vouches for who listens on a loopback address, or has taken a scheme."""
    return urlsplit(uri).scheme != "https"


def name_redirect_host(uri: str) -> str:
    """As people are shown it: the host, or the scheme of an application."""
    parts = urlsplit(uri)
    return (parts.hostname or "") if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def form_action_source(uri: str) -> str:
    """What a page's policy must allow so that its form may end there (Content-Security-Policy, ``form-action``)."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"
