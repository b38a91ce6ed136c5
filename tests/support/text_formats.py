"""Text formats: texts of each format of the hub's own that the OpenAPI document names, for programs that make requests from it."""

from __future__ import annotations

import base64
import string
import unicodedata
import zoneinfo
from typing import Any

from hypothesis import strategies as st
from joserfc.jwk import ECKey

from llm.served.provider_states import write_state
from tests.support.capsules import capsule, pem_of
from tests.support.drawn_pictures import draw, to_base64
from tests.support.import_sources import write_document
from unitools.capsules.signatures import sign
from unitools.expressions import DOMAINS, EFFECTS, SAFETY_CLASSES

SMALL = string.ascii_lowercase + string.digits + "_"
LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
SEGMENTS = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True)
IDS = st.lists(SEGMENTS, min_size=3, max_size=3).map(".".join)
ADDRESSES = st.one_of(
    st.ip_addresses().map(str).filter(lambda text: not text.startswith("::ffff:")),
    st.sampled_from(["10.0.0.0/8", "192.168.7.0/24", "2001:db8::/32"]),
)
HOSTS = st.one_of(
    st.just("*"),
    st.builds(
        "{}{}.{}".format, st.sampled_from(["", "*."]), LABELS, st.lists(LABELS, min_size=1, max_size=3).map(".".join)
    ),
)


def _is_shown(letter: str) -> bool:
    return letter.isprintable() and not letter.isspace()


SEEN = st.characters(exclude_categories=["C", "Z"]).filter(_is_shown)


def _build_expressions() -> st.SearchStrategy[str]:
    atoms = st.one_of(
        st.just("*"),
        IDS,
        st.lists(SEGMENTS, min_size=1, max_size=2).map(lambda parts: ".".join(parts) + ".*"),
        st.from_regex(r"tag:[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True),
        *(
            st.sampled_from(words).map(f"{kind}:{{}}".format)
            for kind, words in {"effect": EFFECTS, "safety": SAFETY_CLASSES, "domain": DOMAINS}.items()
        ),
    )
    whole = st.recursive(
        atoms,
        lambda parts: st.one_of(
            parts.map("~({})".format),
            st.builds("({}) {} {}".format, parts, st.sampled_from("&|"), parts),
        ),
        max_leaves=4,
    )
    return whole.filter(lambda text: len(text) <= 500)


PARTS = st.text(SEEN.filter(lambda letter: letter not in "/\\*"), min_size=1, max_size=20).filter(
    lambda text: text not in (".", "..")
)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PNGS = st.builds(
    lambda width, height: to_base64(draw(width=width, height=height)), st.integers(1, 40), st.integers(1, 40)
)
POINT = ECKey.generate_key("P-256", parameters={"use": "sig"}).as_dict(private=False)


CAPSULE = capsule()
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "absolute-path": PATHS.map("/{}".format),
    "address-range": ADDRESSES,
    "capsule": st.just(CAPSULE.data),
    "capsule-signature": st.just(base64.b64encode(sign(CAPSULE, pem_of())).decode()),  # by a key that no tenant has
    "curve-x": st.just(str(POINT["x"])),
    "curve-y": st.just(str(POINT["y"])),
    "file-path": PATHS,
    "host-pattern": HOSTS,
    "openapi-document": st.sampled_from(["a shop", "a library"]).map(
        lambda word: base64.b64encode(write_document(word)).decode()
    ),
    "picture-url": PNGS.map("data:image/png;base64,{}".format),
    "plain-path": PATHS.map("/{}".format),
    "port-range": st.builds(
        lambda low, more: str(low) if not more else f"{low}-{low + more}", st.integers(1, 60_000), st.integers(0, 5_000)
    ),
    "program-name": st.text(
        SEEN.filter(lambda letter: unicodedata.category(letter) in ("Ll", "Lu", "Lo", "Nd")), min_size=1, max_size=40
    ),
    "provider-state": st.builds(
        lambda provider, data: write_state({"provider": provider, "data": data}),
        st.text(max_size=9),
        st.text(max_size=30),
    ),
    "search-query": st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), min_size=1, max_size=3).map(" ".join),
    "time-zone": st.sampled_from(sorted(zoneinfo.available_timezones())),
    "tool-expression": _build_expressions(),
    "visible-text": st.text(SEEN, min_size=1, max_size=60),
    "png-base64": PNGS,
}
