"""National ids: numbers in a text that stand for a person in the books of a state.

China and the United States have detectors of their own names (``cn_id``, ``us_ssn``); these are the others. A number whose shape could
be anything counts only after a word that says what it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stdnum.br import cpf
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn

from access.redaction.spans import has_word_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.redaction.spans import Span

_B, _A = r"(?<![0-9A-Za-z])(?<![0-9][.\-])", r"(?![0-9A-Za-z])(?![.\-][0-9])"
_REACH = 40


def _is_nino(number: str) -> bool:
    return number[:2].upper() not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


# Shape, check, and the words of which one must stand before; None: the shape says enough.
NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], bool], re.Pattern[str] | None], ...] = tuple(
    (re.compile(_B + shape + _A), check, re.compile(words, re.IGNORECASE) if words else None)
    for shape, check, words in (
        (r"[A-CEGHJ-PR-TW-Za-ceghj-pr-tw-z][A-CEGHJ-NPR-TW-Za-ceghj-npr-tw-z] ?(?:[0-9]{2} ?){3}[A-Da-d]", _is_nino, ""),
        (r"[12] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[ABab]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", nir.is_valid, ""),
        (r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", idnr.is_valid, r"steuer|\bid-?nr|\btin\b"),
        (r"[0-9]{8}-?[A-Za-z]", dni.is_valid, ""),
        (r"[XYZxyz]-?[0-9]{7}-?[A-Za-z]", nie.is_valid, ""),
        (r"[A-Za-z]{6}[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", codicefiscale.is_valid, ""),
        (r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", cpf.is_valid, ""),
        (r"[0-9]{11}", cpf.is_valid, r"\bcpf\b"),
        (r"[2-9][0-9]{3} ?[0-9]{4} ?[0-9]{4}", aadhaar.is_valid, r"aadhaar|\buid"),
        (r"[0-9]{8,9}", bsn.is_valid, r"\bbsn\b|burgerservice|sofi"),
    )
)  # fmt: skip


_SIX_DIGITS = re.compile(r"[0-9](?:[A-Za-z .\-]{0,2}[0-9]){5}")  # as each of them has


def find_national_ids(text: str) -> Iterator[Span]:
    if not _SIX_DIGITS.search(text):
        return
    for shape, is_valid, words in NUMBERS:
        for match in shape.finditer(text):
            if (words is None or has_word_before(text, match.start(), words, _REACH)) and is_valid(match[0]):
                yield match.span()
