"""The reference page of the search of facts."""

from __future__ import annotations

from evidence.search.language import MAX_CHARACTERS, MAX_TERMS, QUALIFIERS
from invocations.call_search.language import OF_CALLS
from toolhub.management.reference.markdown import format_code, format_page, format_table


def search_page() -> str:
    rows = [
        (
            format_code(f"{name}:"),
            str(each.means),
            format_code(each.example),
            "yes" if each.start else "",
            "yes" if each.excludes else "no",
        )
        for name, each in QUALIFIERS.items()
    ]
    of_calls = [
        (format_code(f"{name}:"), str(each.means), format_code(each.example), "yes" if each.start else "")
        for name, each in OF_CALLS.items()
    ]
    return format_page(
        "Search of facts and of calls",
        "evidence/search/language.py and invocations/call_search/language.py",
        f"A query is terms with spaces between them: at most {MAX_TERMS}, in {MAX_CHARACTERS:,} characters. Different qualifiers "
        'narrow; the same one twice means either. `-` before a term excludes what it finds. A value with spaces stands in `"…"`, in '
        'which `\\"` and `\\\\` stand for the characters themselves.',
        format_table(("qualifier", "finds facts by", "example", "`*` at the end", "can be excluded"), rows),
        "A word without a qualifier is a part of a tool's name between dots, its beginning when the word has a dot, an agent's name, "
        "a kind, a reason, the id of anything (`inv_…`, `cns_…`, `snp_…`), a hash or a trace: each as it was pasted.",
        "A query finds single facts, and a call is two. Its Begin says what was decided before the tool ran: `verdict:`, `policy:`, "
        "`grant:`, and of a call that was refused the `code:`. Its End says how it went: `code:`, `pii:`. `outcome:` of a Begin is "
        "that of the decision, of an End that of the call. Both are found by `tool:`, `agent:`, `user:`, `call:`, `chain:` and "
        "`consent:`. So `policy:` together with the `code:` of a failure finds nothing: search for one, and open the call. "
        "`proposed_by:` finds both of a call that names the answer that proposed it, `proposed_by:*` those of all such calls.",
        "Times without a zone are in yours in the console and in UTC over REST; they are compared with when the fact was written. "
        "Facts come newest first, in the order of the log; what is in no log yet comes before.",
        "The same in the console at `/evidence?q=…`, with `view=timeline` as a timeline, and over REST at `GET "
        "/api/v1/evidence/facts?q=…`. What is not understood is refused with `EVIDENCE.SEARCH_INVALID`, which names each place and "
        "what to write instead.",
        "## Search of calls",
        "The same language at `/invocations?q=…` and `GET /api/v1/invocations?q=…`, where a call is one row: what was decided and how "
        "it went are found together. A term of both means the same in both; a word without a qualifier is also a part of a tool's "
        "name between underscores, a word of what a problem says, the id of a request or an idempotency key. What a tool said itself "
        "is sealed, and not searched.",
        format_table(("qualifier", "finds calls by", "example", "`*` at the end"), of_calls),
    )
