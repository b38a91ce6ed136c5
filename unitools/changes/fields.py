"""Fields: what changed in each field of a manifest that is no schema.

One function a field, given its value before and after with the defaults filled in. A field whose value has another form than
its function expects, and a field that has no function, is judged as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.changes.added_capabilities import find_uncovered, host_within, is_readable
from unitools.changes.comparisons import (
    Changes,
    Judge,
    Keyed,
    compare_as_flag,
    compare_as_number,
    compare_as_set,
    compare_as_value,
    compare_keyed_entries,
    compare_unknown_members,
    ignore_field,
    name_direction,
)
from unitools.changes.dependency_changes import compare_dependencies, compare_dependency_lock, is_lock
from unitools.changes.kinds import make_change
from unitools.changes.origin_changes import compare_implementation, compare_origin, is_origin
from unitools.expressions import EFFECTS, SAFETY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


EFFECT_ABOVE = {"None": set[str](), "Read": {"None"}}  # the others are above both, and beside each other
CONSENT_SCOPES = ("once", "period", "standing")
RUN_LIMITS = (
    "max_bytes_out",
    "files",
    "artifacts",
    "artifact_bytes",
    "concurrency",
    "memory_bytes",
    "idle_ms",
)
# What callers may send, in words of their own: less of it refuses arguments that were taken.
INPUT_LIMITS = {"max_bytes_in": ("input_raised", "input_lowered"), "depth": ("depth_raised", "depth_lowered")}
ISOLATION_LEVELS = ("shared", "fresh", "single", "cold")  # weakest first
UNLIMITED = float("inf")


class Field(NamedTuple):
    judge: Judge
    has_form: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_objects(*needed: str) -> Callable[[Any], bool]:
    def has_form(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(each, dict) and all(isinstance(each.get(name), str) for name in needed) for each in value
        )

    return has_form


def compare_call_sentence(old: str | None, new: str | None) -> Changes:
    """What somebody decides by; another sentence for the same call is not a matter of wording alone."""
    word = "added" if old is None else "removed" if new is None else "changed"
    yield make_change(f"call_sentence.{word}", "/call_sentence", old, new)


def compare_localizations(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """What people read in place of the text that was reviewed before: by language, and of one that stays by its texts."""
    for tag in sorted(old.keys() | new.keys()):
        was, is_now = old.get(tag), new.get(tag)
        if was is None or is_now is None:
            yield make_change(
                f"localizations.{'added' if was is None else 'removed'}", f"/localizations/{tag}", was, is_now
            )
            continue
        for name in sorted(was.keys() | is_now.keys()):
            if was.get(name) != is_now.get(name):
                pointer = f"/localizations/{tag}/{name}"
                yield make_change("localizations.changed", pointer, was.get(name), is_now.get(name))


def compare_side_effect(old: str, new: str) -> Changes:
    is_lower = new in EFFECT_ABOVE.get(old, {"None", "Read"})
    yield make_change(name_direction("side_effect", is_up=not is_lower), "/side_effect", old, new)


def compare_safety_class(old: str, new: str) -> Changes:
    yield make_change(
        name_direction("safety_class", is_up=SAFETY_CLASSES.index(new) > SAFETY_CLASSES.index(old)),
        "/safety_class",
        old,
        new,
    )


def compare_idempotency(old: str, new: str) -> Changes:
    yield make_change(
        name_direction("idempotency", is_up=new == "keyed", words=("strengthened", "weakened")),
        "/idempotency",
        old,
        new,
    )


def compare_capabilities(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    for pointer, entry in find_uncovered(new, old):
        part = pointer.split("/")[1]
        yield make_change("capabilities.added", f"/capabilities{pointer}", None, {part: entry})
    for pointer, entry in find_uncovered(old, new):
        part = pointer.split("/")[1]
        yield make_change("capabilities.removed", f"/capabilities{pointer}", {part: entry}, None)


def _by(name: str, entries: Iterable[dict[str, Any]]) -> Keyed:
    return {entry[name]: (index, entry) for index, entry in enumerate(entries)}


def compare_secrets(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Changes:
    before, after = _by("name", old), _by("name", new)
    for name, (index, entry) in after.items():
        pointer = f"/secrets/{index}"
        if name not in before:
            yield make_change("secrets.added", pointer, None, entry)
            continue
        former = before[name][1]
        if former.get("description") != entry.get("description"):
            yield make_change(
                "secrets.described", f"{pointer}/description", former.get("description"), entry.get("description")
            )
        yield from _secret_hosts(former.get("hosts", ["*"]), entry.get("hosts", ["*"]), f"{pointer}/hosts")
        needed = former.get("required", True), entry.get("required", True)
        if needed[0] != needed[1]:
            yield make_change("secrets.required" if needed[1] else "secrets.optional", f"{pointer}/required", *needed)
        yield from compare_unknown_members(pointer, former, entry, ("name", "description", "hosts", "required"))
    for name, (index, entry) in before.items():
        if name not in after:
            yield make_change("secrets.removed", f"/secrets/{index}", entry, None)


def _secret_hosts(old: Any, new: Any, pointer: str) -> Changes:
    """Without a list a secret may go wherever the tool may."""
    if not (_is_words(old) and _is_words(new)):
        if old != new:
            yield make_change("field.changed", pointer, old, new)
        return
    if not all(any(host_within(host, each) for each in old) for host in new):
        yield make_change("secrets.widened", pointer, old, new)
    elif not all(any(host_within(host, each) for each in new) for host in old):
        yield make_change("secrets.narrowed", pointer, old, new)


def compare_consent(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """How long and how widely a consent is good. Whether one is needed is asked by :func:`compare_consent_need`."""
    for word in ("validity_seconds", "scope"):
        was, is_now = old.get(word), new.get(word)
        less, more = _extent(was), _extent(is_now)
        if was == is_now:
            continue
        if less is None or more is None:
            yield make_change("field.changed", f"/consent/{word}", was, is_now)
        else:
            kind = name_direction("consent", is_up=more > less, words=("loosened", "tightened"))
            yield make_change(kind, f"/consent/{word}", was, is_now)
    yield from compare_unknown_members("/consent", old, new, ("required", "validity_seconds", "scope"))


def _extent(value: Any) -> float | None:
    if _is_number(value):
        return float(value)
    return CONSENT_SCOPES.index(value) if value in CONSENT_SCOPES else None


def compare_consent_need(*, was: bool, is_now: bool) -> Changes:
    """TOOLS-19: a consent is needed when the manifest says so, and always for High, Write and Process."""
    if was != is_now:
        yield make_change("consent.required" if is_now else "consent.loosened", "/consent/required", was, is_now)


def _bound(name: str, value: Any) -> Any:
    return UNLIMITED if name == "idle_ms" and _is_number(value) and value == 0 else value


def compare_limits(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    for name in sorted(old.keys() | new.keys()):
        was, is_now = (_bound(name, side.get(name, UNLIMITED)) for side in (old, new))
        if was == is_now:
            continue
        if not (_is_number(was) and _is_number(is_now) and name in (*RUN_LIMITS, *INPUT_LIMITS)):
            yield make_change("field.changed", f"/limits/{name}", old.get(name), new.get(name))
            continue
        kind = name_direction("limits", is_up=is_now > was, words=INPUT_LIMITS.get(name, ("raised", "lowered")))
        yield make_change(kind, f"/limits/{name}", old.get(name), new.get(name))


def compare_isolation(old: str | None, new: str | None) -> Changes:
    """Left out, it asks for nothing, as the weakest level does."""
    was, is_now = (ISOLATION_LEVELS.index(level or ISOLATION_LEVELS[0]) for level in (old, new))
    if was != is_now:
        kind = name_direction("isolation", is_up=is_now > was, words=("strengthened", "weakened"))
        yield make_change(kind, "/isolation", ISOLATION_LEVELS[was], ISOLATION_LEVELS[is_now])


def compare_state(old: dict[str, Any] | None, new: dict[str, Any] | None) -> Changes:
    """Another scope is another's files: what was kept is not found any more, or by more than before."""
    if old is None or new is None:
        yield make_change(f"state.{'added' if old is None else 'removed'}", "/state", old, new)
    elif (was := old.get("scope", "tenant")) != (now := new.get("scope", "tenant")):
        yield make_change("state.scope_changed", "/state/scope", was, now)
    elif old != new:
        yield make_change("state.changed", "/state", old, new)


def compare_isolate_by(old: str, new: str) -> Changes:
    kind = name_direction("isolation", is_up=new == "agent", words=("strengthened", "weakened"))
    yield make_change(kind, "/isolate_by", old, new)


def compare_provider_compat(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """No list of models means all of them."""
    was, is_now = old.get("models"), new.get("models")
    if was != is_now:
        if not all(each is None or _is_words(each) for each in (was, is_now)):
            yield make_change("field.changed", "/provider_compat/models", was, is_now)
        elif is_now and (not was or set(was) - set(is_now)):
            yield make_change("provider_compat.narrowed", "/provider_compat/models", was, is_now)
        elif was and (not is_now or set(is_now) - set(was)):
            yield make_change("provider_compat.widened", "/provider_compat/models", was, is_now)
    if old.get("platform") != new.get("platform"):
        change = old.get("platform", "all"), new.get("platform", "all")
        yield make_change("provider_compat.platform_changed", "/provider_compat/platform", *change)
    yield from compare_unknown_members("/provider_compat", old, new, ("models", "platform"))


def compare_deprecations(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Changes:
    yield from compare_keyed_entries("deprecations", "/deprecations", _by("pointer", old), _by("pointer", new))


def compare_ttl(old: Any, new: Any) -> Changes:
    if old is None or new is None:
        yield make_change("ttl.added" if old is None else "ttl.removed", "/ttl_seconds", old, new)
    else:
        yield from compare_as_number("ttl", "/ttl_seconds")(old, new)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


FIELDS: dict[str, Field] = {
    "id": Field(compare_as_value("id.changed", "/id"), _is_text),
    "name": Field(ignore_field, lambda value: value is None or _is_text(value)),  # the id says it already
    "display_name": Field(compare_as_value("display_name.changed", "/display_name"), _is_text),
    "description": Field(compare_as_value("description.changed", "/description"), _is_text),
    "call_sentence": Field(compare_call_sentence, lambda value: value is None or _is_text(value)),
    "examples": Field(compare_as_set("examples", "/examples"), _is_words),
    "localizations": Field(
        compare_localizations,
        lambda value: _is_object(value) and all(_is_object(each) for each in value.values()),
    ),
    "tags": Field(compare_as_set("tags", "/tags"), _is_words),
    "scopes": Field(compare_as_set("scopes", "/scopes"), lambda value: isinstance(value, list)),
    "capabilities": Field(compare_capabilities, is_readable),
    "secrets": Field(compare_secrets, _is_objects("name")),
    "data_classes": Field(compare_as_set("data_classes", "/data_classes"), _is_words),
    "side_effect": Field(compare_side_effect, _is_one_of(*EFFECTS)),
    "safety_class": Field(compare_safety_class, _is_one_of(*SAFETY_CLASSES)),
    "consent": Field(compare_consent, _is_object),
    "timeout_ms": Field(compare_as_number("timeout", "/timeout_ms"), _is_number),
    "limits": Field(compare_limits, _is_object),
    "concurrency": Field(compare_as_value("concurrency.changed", "/concurrency"), _is_one_of("serial", "parallel")),
    "state": Field(compare_state, lambda value: value is None or _is_object(value)),
    "idempotency": Field(compare_idempotency, _is_one_of("keyed", "none")),
    "idempotency_keep_seconds": Field(compare_as_number("idempotency_keep", "/idempotency_keep_seconds"), _is_number),
    "determinism": Field(compare_as_value("determinism.changed", "/determinism"), _is_object),
    "dry_run": Field(compare_as_flag("dry_run", "/dry_run", "added", "removed"), _is_flag),
    "provider_compat": Field(compare_provider_compat, _is_object),
    "deprecations": Field(compare_deprecations, _is_objects("pointer")),
    "implementation": Field(compare_implementation, _is_object),
    "model": Field(compare_as_value("model.changed", "/model"), lambda value: value is None or _is_object(value)),
    "requires_sandbox": Field(compare_as_flag("requires_sandbox", "/requires_sandbox", "raised", "lowered"), _is_flag),
    "isolation": Field(compare_isolation, lambda value: value is None or value in ISOLATION_LEVELS),
    "isolate_by": Field(compare_isolate_by, _is_one_of("tenant", "agent")),
    "dependencies": Field(compare_dependencies, _is_words),
    "dependency_constraints": Field(compare_as_set("constraints", "/dependency_constraints"), _is_words),
    "origin": Field(compare_origin, is_origin),
    "dependency_lock": Field(compare_dependency_lock, is_lock),
    "output_repair": Field(compare_as_set("output_repair", "/output_repair"), _is_words),
    "quotes": Field(compare_as_set("quotes", "/quotes"), _is_words),
    "ttl_seconds": Field(compare_ttl, lambda value: value is None or _is_number(value)),
    "async": Field(compare_as_value("async.changed", "/async"), _is_flag),
}
