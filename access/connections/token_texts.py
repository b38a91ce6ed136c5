"""Token texts: the form of what programs of connections show, and how it is known again.

``hubo_<secret><check>`` for an access token and ``hubr_…`` for a refresh token; check digits as in an API key. They say nothing and
are kept as a hash: with 256 bits there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from access.agents.api_keys import CHECK_LENGTH, SECRET_LENGTH, compute_check, draw_letters

ACCESS, REFRESH = "hubo_", "hubr_"


def make_token(prefix: str) -> str:
    body = prefix + draw_letters(SECRET_LENGTH)
    return body + compute_check(body)


# Named in the settings of django-oauth-toolkit, which hands in the request.
def make_access_token(request: Any) -> str:
    del request
    return make_token(ACCESS)


def make_refresh_token(request: Any) -> str:
    del request
    return make_token(REFRESH)


def is_well_formed(text: str, prefix: str = ACCESS) -> bool:
    """Whether it may be one, so that junk costs no query."""
    if len(text) != len(prefix) + SECRET_LENGTH + CHECK_LENGTH or not text.startswith(prefix) or not text.isascii():
        return False
    return hmac.compare_digest(compute_check(text[:-CHECK_LENGTH]), text[-CHECK_LENGTH:])


def compute_token_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
