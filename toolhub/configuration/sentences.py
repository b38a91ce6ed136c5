"""Sentences: what a change of a plan does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.utils.functional import _StrPromise

    from toolhub.configuration.plan import ConfigurationChange

MAX_NAMED = 20
SECTION_WORDS: dict[str, _StrPromise] = {
    "agents": gettext_lazy("Agents"),
    "installations": gettext_lazy("Installed tools"),
    "model_providers": gettext_lazy("Model providers"),
    "models": gettext_lazy("Models"),
    "model_prefix": gettext_lazy("Model prefix"),
    "model_prices": gettext_lazy("Prices of models"),
    "grants": gettext_lazy("Grants"),
    "budgets": gettext_lazy("Budgets"),
    "issuers": gettext_lazy("Identity providers"),
    "identities": gettext_lazy("Subjects of tokens"),
    "notifications": gettext_lazy("Notifications"),
    "policy": gettext_lazy("Policy"),
    "members": gettext_lazy("People"),
}
SENTENCES: dict[tuple[str, str], _StrPromise] = {
    ("agents", "create"): gettext_lazy("Create the agent %(key)s."),
    ("agents", "end"): gettext_lazy("Disable the agent %(key)s: all its requests are refused."),
    ("installations", "create"): gettext_lazy("Install %(key)s."),
    ("installations", "change"): gettext_lazy("Change the installation of %(key)s: %(fields)s."),
    ("installations", "end"): gettext_lazy("Remove the installation of %(key)s."),
    ("model_providers", "create"): gettext_lazy("Connect the model provider %(key)s."),
    ("model_providers", "change"): gettext_lazy("Change the model provider %(key)s: %(fields)s."),
    ("model_providers", "end"): gettext_lazy("Remove the model provider %(key)s, with its models."),
    ("models", "create"): gettext_lazy("Connect the model %(key)s."),
    ("models", "change"): gettext_lazy("Change the model %(key)s: %(fields)s."),
    ("models", "end"): gettext_lazy("Remove the model %(key)s."),
    ("model_prefix", "create"): gettext_lazy("Say another text to every model before all else."),
    ("model_prefix", "change"): gettext_lazy("Say another text to every model before all else."),
    ("model_prices", "create"): gettext_lazy("Set what models cost."),
    ("model_prices", "change"): gettext_lazy("Change what models cost: %(fields)s."),
    ("grants", "create"): gettext_lazy("Give a grant: %(key)s."),
    ("grants", "end"): gettext_lazy("Revoke the grant %(key)s."),
    ("budgets", "create"): gettext_lazy("Set a budget of %(amount)s: %(key)s."),
    ("budgets", "change"): gettext_lazy("Change the budget %(key)s: %(fields)s."),
    ("budgets", "end"): gettext_lazy("End the budget %(key)s."),
    ("issuers", "create"): gettext_lazy("Accept tokens of %(key)s."),
    ("issuers", "change"): gettext_lazy("Change the identity provider %(key)s: %(fields)s."),
    ("issuers", "end"): gettext_lazy("Accept no more tokens of %(key)s."),
    ("identities", "create"): gettext_lazy("Map the subject %(key)s to an agent."),
    ("identities", "change"): gettext_lazy("Change the mapping of the subject %(key)s: %(fields)s."),
    ("identities", "end"): gettext_lazy("Remove the mapping of the subject %(key)s."),
    ("notifications", "create"): gettext_lazy("Send notifications to %(key)s."),
    ("notifications", "change"): gettext_lazy("Change which notifications %(key)s gets."),
    ("notifications", "end"): gettext_lazy("Stop sending notifications to %(key)s."),
    ("policy", "create"): gettext_lazy("Draft a policy; it has no effect until another person publishes it."),
    ("policy", "change"): gettext_lazy("Draft another policy; it has no effect until another person publishes it."),
    ("members", "create"): gettext_lazy("Give %(key)s the roles %(roles)s."),
    ("members", "change"): gettext_lazy("Change the roles of %(key)s to %(roles)s."),
    ("members", "end"): gettext_lazy("Remove all roles from %(key)s."),
}


def describe_change(change: ConfigurationChange) -> str:
    after: dict[str, Any] = change.after or {}
    if change.action == "same":
        return gettext("%(key)s stays as it is.") % {"key": change.key}
    if (change.section, change.action) == ("agents", "change"):
        enabled = gettext("Enable the agent %(key)s again.")
        return (SENTENCES["agents", "end"] if after["disabled"] else enabled) % {"key": change.key}
    if (change.section, change.action) == ("members", "change") and "roles" not in after:
        return gettext("Change what %(key)s may do with single tools and agents.") % {"key": change.key}
    if (change.section, change.action) == ("grants", "change"):
        return _grant(change)
    said = {
        "key": change.key,
        "fields": ", ".join(after),
        "amount": after.get("amount", ""),
        "roles": ", ".join(after.get("roles", [])),
    }
    return SENTENCES[change.section, str(change.action)] % said


def _grant(change: ConfigurationChange) -> str:
    said = {"key": change.key, "fields": ", ".join(change.after or {})}
    if change.replaces:
        return gettext("Revoke the grant %(key)s and give another: %(fields)s.") % said
    if "limits" not in (change.after or {}):
        return gettext("Extend the grant %(key)s.") % said
    return gettext("Change the grant %(key)s: %(fields)s.") % said


def describe_unchanged(left: Iterable[ConfigurationChange]) -> list[str]:
    """A sentence for each section with things that the file leaves out and does not end: a grant with other tools is another one."""
    sections: dict[str, list[str]] = {}
    for change in left:
        sections.setdefault(change.section, []).append(change.key)
    return [_staying(name, keys) for name, keys in sections.items()]


def _staying(name: str, keys: list[str]) -> str:
    said = {"section": SECTION_WORDS[name], "name": name, "keys": "; ".join(keys[:MAX_NAMED])}
    if len(keys) > MAX_NAMED:
        said["keys"] = gettext("%(keys)s and %(count)s more") % {
            "keys": said["keys"],
            "count": len(keys) - MAX_NAMED,
        }
    return gettext("%(section)s that are not in the file stay: %(keys)s. Add `prune: [%(name)s]` to end them.") % said
