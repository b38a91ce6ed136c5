"""Labels: the words, tones and formats in which people read states, amounts and times."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from kernel.components.numbers import format_number
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.functional import _StrPromise

    Text = str | _StrPromise

NO_VALUE = "—"

# word -> (tone, icon, label). A word means the same wherever it is a state: of an invocation, tool, consent or review.
STATUS: dict[str, tuple[str, str, Text]] = {
    "received": ("info", "circle-dot", gettext_lazy("Received")),
    "accepted": ("info", "play", gettext_lazy("Accepted")),
    "held": ("warn", "hourglass", gettext_lazy("Waiting for consent")),
    "queued": ("info", "circle-dashed", gettext_lazy("Queued")),
    "running": ("info", "circle-dashed", gettext_lazy("Running")),
    "succeeded": ("ok", "circle-check", gettext_lazy("Succeeded")),
    "failed": ("bad", "circle-x", gettext_lazy("Failed")),
    "tool_refused": ("quiet", "message-square", gettext_lazy("Refused by the tool")),
    "denied": ("bad", "ban", gettext_lazy("Denied")),
    "compensating": ("warn", "undo-2", gettext_lazy("Being undone")),
    "timed_out": ("bad", "timer", gettext_lazy("Timed out")),
    "cancelled": ("hold", "circle-stop", gettext_lazy("Cancelled")),
    "expired": ("hold", "calendar-clock", gettext_lazy("Expired")),
    "outcome_unknown": ("warn", "circle-help", gettext_lazy("Outcome unknown")),
    "registered": ("warn", "clock", gettext_lazy("Needs review")),
    "level_met": ("ok", "circle-check", gettext_lazy("Met")),
    "level_missed": ("bad", "triangle-alert", gettext_lazy("Missed")),
    "level_idle": ("idle", "circle-dashed", gettext_lazy("No data")),
    "stopped": ("bad", "hand", gettext_lazy("Stopped")),
    "denies_all": ("bad", "ban", gettext_lazy("Denies everything")),
    "names_no_tool": ("warn", "triangle-alert", gettext_lazy("Names no tool")),
    "enabled": ("ok", "circle-check", gettext_lazy("Enabled")),
    "paused": ("hold", "circle-pause", gettext_lazy("Paused")),
    "deprecated": ("hold", "archive", gettext_lazy("Deprecated")),
    "submitted": ("warn", "clock", gettext_lazy("Needs review")),
    "requested": ("warn", "hourglass", gettext_lazy("Requested")),
    "approved": ("ok", "stamp", gettext_lazy("Approved")),
    "refused": ("bad", "ban", gettext_lazy("Refused")),
    "withdrawn": ("hold", "undo-2", gettext_lazy("Withdrawn")),
    "pending": ("warn", "clock", gettext_lazy("Needs review")),
    "suspended": ("hold", "circle-pause", gettext_lazy("Suspended")),
    "revoked": ("bad", "ban", gettext_lazy("Revoked")),
    "active": ("ok", "circle-check", gettext_lazy("Active")),
    "nearly": ("warn", "hourglass", gettext_lazy("Nearly used up")),
    "over": ("bad", "ban", gettext_lazy("Used up")),
    "used": ("hold", "check", gettext_lazy("Used")),
    "waiting": ("warn", "hourglass", gettext_lazy("Waiting")),
    "granted": ("ok", "handshake", gettext_lazy("Granted")),
    "connected": ("ok", "link", gettext_lazy("Connected")),
    "declined": ("bad", "ban", gettext_lazy("Declined")),
    "once": ("info", "stamp", gettext_lazy("For one call")),
    "period": ("info", "calendar-clock", gettext_lazy("For a time")),
    "standing": ("info", "repeat", gettext_lazy("Until revoked")),
    "allowed": ("ok", "circle-check", gettext_lazy("Allowed")),
    "open": ("warn", "circle-dashed", pgettext_lazy("a Begin without its End", "Open")),
    "removed": ("hold", "unplug", gettext_lazy("Removed")),
    "yanked": ("bad", "undo-2", gettext_lazy("Yanked")),
    "resolving": ("info", "circle-dashed", gettext_lazy("Being resolved")),
    "unresolved": ("bad", "circle-x", gettext_lazy("Not resolved")),
    "locked": ("info", "lock", gettext_lazy("Versions locked")),
    "building": ("info", "circle-dashed", gettext_lazy("Being installed")),
    "ready": ("ok", "circle-check", gettext_lazy("Installed")),
    "box_creating": ("info", "circle-dashed", gettext_lazy("Starting")),
    "box_loading": ("info", "circle-dashed", gettext_lazy("Loading")),
    "box_ready": ("info", "circle-dot", gettext_lazy("Blank")),
    "box_loaded": ("ok", "circle-check", gettext_lazy("Warm")),
    "box_busy": ("info", "play", gettext_lazy("Busy")),
    "box_retiring": ("hold", "circle-stop", gettext_lazy("Ending")),
    "draft": ("info", "file-json-2", gettext_lazy("Draft")),
    "in_force": ("ok", "circle-check", gettext_lazy("In force")),
    "superseded": ("hold", "history", gettext_lazy("Superseded")),
    "discarded": ("hold", "archive", gettext_lazy("Discarded")),
    "permit": ("ok", "check", gettext_lazy("Permit")),
    "forbid": ("bad", "ban", gettext_lazy("Forbid")),
    "consent": ("warn", "user-check", gettext_lazy("Consent")),
    "ceiling": ("info", "box", gettext_lazy("Bound")),
    "isolation": ("info", "unplug", gettext_lazy("Isolation")),
    "oblige": ("info", "eye-off", gettext_lazy("Obligation")),
    "price": ("info", "scale", gettext_lazy("Price")),
    "now_denied": ("bad", "ban", gettext_lazy("Now denied")),
    "now_held": ("warn", "hourglass", gettext_lazy("Now held")),
    "now_allowed": ("warn", "play", gettext_lazy("Now allowed")),
    "wider": ("warn", "unfold-vertical", gettext_lazy("Wider")),
    "narrower": ("info", "fold-vertical", gettext_lazy("Narrower")),
    "different": ("warn", "git-compare", gettext_lazy("Different")),
    "match": ("ok", "circle-check", gettext_lazy("Match")),
    "differs": ("bad", "git-compare", gettext_lazy("Differs")),
    "not_deterministic": ("warn", "repeat", gettext_lazy("Not deterministic")),
    "cannot": ("hold", "unplug", gettext_lazy("Cannot be replayed")),
    "equal": ("ok", "circle-check", gettext_lazy("Equal")),
    "same": ("ok", "circle-check", gettext_lazy("Same")),
    "not_kept": ("hold", "archive", gettext_lazy("Not kept")),
    "ok": ("ok", "check", gettext_lazy("Passed")),
    "warn": ("warn", "triangle-alert", gettext_lazy("Warning")),
    "bad": ("bad", "x", gettext_lazy("Failed")),
    "disabled": ("hold", "circle-pause", gettext_lazy("Disabled")),
    "live": ("ok", "circle-check", gettext_lazy("Active")),
    "trusted": ("ok", "circle-check", gettext_lazy("Trusted")),
    "distrusted": ("bad", "ban", gettext_lazy("Not trusted")),
    "delivered": ("ok", "circle-check", gettext_lazy("Delivered")),
    "trying": ("info", "repeat", gettext_lazy("Trying")),
    "given_up": ("bad", "circle-x", gettext_lazy("Given up")),
    "ended": ("hold", "circle-stop", gettext_lazy("Ended")),
    "asked": ("info", "circle-dashed", gettext_lazy("Requested")),
    "erasing": ("info", "circle-dashed", gettext_lazy("Being removed")),
    "done": ("ok", "circle-check", gettext_lazy("Done")),
    "passed": ("ok", "stamp", gettext_lazy("Verified")),
    "skipped": ("quiet", "minus", gettext_lazy("Not reached")),
}
# kind of fact -> (tone, icon, label)
FACT: dict[str, tuple[str, str, Text]] = {
    "invocation.began": ("info", "play", gettext_lazy("Call began")),
    "invocation.ended": ("quiet", "circle-stop", gettext_lazy("Call ended")),
    "dry_run.began": ("info", "play", gettext_lazy("Dry run began")),
    "dry_run.ended": ("quiet", "circle-stop", gettext_lazy("Dry run ended")),
    "invocation.preflighted": ("quiet", "circle-check", gettext_lazy("Preflights")),
    "invocation.rerun": ("info", "rotate-ccw", gettext_lazy("Call rerun for comparison")),
    "replay.began": ("info", "play", gettext_lazy("Replay began")),
    "replay.ended": ("quiet", "circle-stop", gettext_lazy("Replay ended")),
    "request.rejected": ("warn", "circle-x", gettext_lazy("Requests refused")),
    "chain.began": ("info", "play", gettext_lazy("Chain began")),
    "chain.ended": ("quiet", "circle-stop", gettext_lazy("Chain ended")),
    "chain.refused": ("bad", "ban", gettext_lazy("Chain refused")),
    "chain.cancel_asked": ("hold", "circle-stop", gettext_lazy("Chain cancellation requested")),
    "agent_run.began": ("info", "play", gettext_lazy("Agent run began")),
    "agent_run.ended": ("quiet", "circle-stop", gettext_lazy("Agent run ended")),
    "agent_run.refused": ("bad", "ban", gettext_lazy("Agent run refused")),
    "agent_run.cancel_asked": ("hold", "circle-stop", gettext_lazy("Agent run cancellation requested")),
    "playground.created": ("ok", "bot", gettext_lazy("Playground set up")),
    "playground_message.sent": ("info", "message-square", gettext_lazy("Playground message sent")),
    "invocation.held": ("warn", "hourglass", gettext_lazy("Call is waiting for consent")),
    "invocation.resumed": ("ok", "play", gettext_lazy("Call resumed")),
    "invocation.cancel_asked": ("hold", "circle-stop", gettext_lazy("Cancellation requested")),
    "invocation.segment": ("quiet", "scroll-text", gettext_lazy("Progress recorded")),
    "callback.made": ("info", "link", gettext_lazy("Callback endpoint set up")),
    "callback.rotated": ("info", "key-round", gettext_lazy("Secret of a callback endpoint rotated")),
    "callback.disabled": ("hold", "unplug", gettext_lazy("Callback endpoint disabled")),
    "callback.delivered": ("ok", "circle-check", gettext_lazy("Callback delivered")),
    "callback.failed": ("bad", "circle-x", gettext_lazy("Callback given up")),
    "callback.redelivered": ("info", "repeat", gettext_lazy("Callback redelivery requested")),
    "invocation.retried": ("hold", "repeat", gettext_lazy("Rerun after a crash")),
    "invocation.resolved": ("ok", "circle-check", gettext_lazy("Outcome resolved")),
    "artifact.read": ("quiet", "download", gettext_lazy("Artifact read")),
    "artifact.removed": ("quiet", "circle-x", gettext_lazy("Artifact removed")),
    "delegation.given": ("info", "circle-check", gettext_lazy("Grant delegated")),
    "delegation.revoked": ("warn", "ban", gettext_lazy("Delegated grant withdrawn")),
    "invocation.replayed": ("quiet", "repeat", gettext_lazy("Answer replayed")),
    "tool.registered": ("info", "upload", gettext_lazy("Version submitted")),
    "tool.reviewed": ("info", "stamp", gettext_lazy("Version reviewed")),
    "tool.enabled": ("ok", "circle-check", gettext_lazy("Tool enabled")),
    "tool.paused": ("hold", "circle-pause", gettext_lazy("Tool paused")),
    "tool.deprecated": ("hold", "archive", gettext_lazy("Tool deprecated")),
    "tool.shared": ("info", "users", gettext_lazy("Tool shared")),
    "tool.unshared": ("hold", "users", gettext_lazy("Sharing ended")),
    "model_provider.connected": ("info", "link", gettext_lazy("Model provider connected")),
    "model_provider.changed": ("info", "link", gettext_lazy("Model provider changed")),
    "model_provider.paused": ("hold", "circle-pause", gettext_lazy("Model provider paused")),
    "model_provider.enabled": ("ok", "circle-check", gettext_lazy("Model provider enabled")),
    "model_provider.removed": ("bad", "unplug", gettext_lazy("Model provider removed")),
    "model_prefix.set": ("info", "link", gettext_lazy("Model prefix set")),
    "model.connected": ("info", "link", gettext_lazy("Model connected")),
    "model.changed": ("info", "link", gettext_lazy("Model changed")),
    "model.removed": ("bad", "unplug", gettext_lazy("Model removed")),
    "model_meter.differed": ("bad", "shield-alert", gettext_lazy("Reported usage changed")),
    "model_prices.set": ("info", "settings", gettext_lazy("Model prices set")),
    "version.staged": ("info", "users", gettext_lazy("Version staged")),
    "version.yanked": ("bad", "undo-2", gettext_lazy("Version yanked")),
    "version.trusted": ("ok", "shield-check", gettext_lazy("Version trusted")),
    "version.distrusted": ("hold", "shield-alert", gettext_lazy("Trust in a version ended")),
    "dependencies.locked": ("info", "lock", gettext_lazy("Dependencies locked")),
    "dependencies.unresolved": ("bad", "circle-x", gettext_lazy("Dependencies not resolved")),
    "dependencies.queued": ("info", "circle-dashed", gettext_lazy("Dependencies requested")),
    "dependencies.started": ("info", "play", gettext_lazy("Installing dependencies began")),
    "dependencies.built": ("ok", "circle-check", gettext_lazy("Dependencies installed")),
    "dependencies.failed": ("bad", "circle-x", gettext_lazy("Dependencies not installed")),
    "dependencies.retried": ("info", "repeat", gettext_lazy("Dependencies retried")),
    "dependencies.released": ("hold", "archive", gettext_lazy("Dependencies no longer needed")),
    "import.read": ("info", "file-json-2", gettext_lazy("Source of tools read")),
    "import.submitted": ("info", "upload", gettext_lazy("Drafts of tools submitted")),
    "import.effect_chosen": ("warn", "scale", gettext_lazy("Another effect chosen than proposed")),
    "import.removed": ("hold", "x", gettext_lazy("Source of tools removed")),
    "installation.changed": ("info", "settings", gettext_lazy("Installation changed")),
    "installation.moved": ("info", "arrow-right", gettext_lazy("Installation moved to another version")),
    "secret.set": ("info", "lock", gettext_lazy("Secret set")),
    "secret.removed": ("hold", "lock", gettext_lazy("Secret removed")),
    "file.stored": ("info", "upload", gettext_lazy("File stored")),
    "file.read": ("quiet", "download", gettext_lazy("File read")),
    "file.removed": ("hold", "x", gettext_lazy("File removed")),
    "halt.thrown": ("bad", "hand", gettext_lazy("Kill switch thrown")),
    "halt.lifted": ("ok", "play", gettext_lazy("Kill switch lifted")),
    "policy.drafted": ("info", "file-json-2", gettext_lazy("Policy drafted")),
    "policy.simulated": ("info", "repeat", gettext_lazy("Policy tested on past calls")),
    "policy.published": ("ok", "scale", gettext_lazy("Policy published")),
    "policy.discarded": ("hold", "archive", gettext_lazy("Policy draft discarded")),
    "grant.given": ("ok", "handshake", gettext_lazy("Grant given")),
    "grant.extended": ("ok", "calendar-clock", gettext_lazy("Grant extended")),
    "grant.requested": ("warn", "hand", gettext_lazy("Grant requested")),
    "grant.declined": ("bad", "ban", gettext_lazy("Grant request declined")),
    "grant.revoked": ("bad", "ban", gettext_lazy("Grant revoked")),
    "consent.requested": ("warn", "hourglass", gettext_lazy("Consent requested")),
    "consent.approved": ("ok", "stamp", gettext_lazy("Consent approved")),
    "consent.denied": ("bad", "ban", gettext_lazy("Consent denied")),
    "consent.revoked": ("bad", "ban", gettext_lazy("Consent revoked")),
    "consent.used": ("hold", "check", gettext_lazy("Consent used")),
    "consent.expired": ("hold", "calendar-clock", gettext_lazy("Consent expired")),
    "budget.set": ("info", "timer", gettext_lazy("Budget set")),
    "budget.ended": ("hold", "timer", gettext_lazy("Budget ended")),
    "tenant.created": ("info", "building-2", gettext_lazy("Tenant created")),
    "membership.given": ("info", "user", gettext_lazy("Role given")),
    "agent.created": ("info", "bot", gettext_lazy("Agent created")),
    "membership.ended": ("bad", "user", gettext_lazy("Role withdrawn")),
    "permission.given": ("info", "shield-check", gettext_lazy("Permission given")),
    "permission.taken": ("bad", "shield-alert", gettext_lazy("Permission withdrawn")),
    "person.invited": ("info", "user", gettext_lazy("Person invited")),
    "person.password_set": ("info", "lock", gettext_lazy("Password set")),
    "person.factor_added": ("ok", "shield-check", gettext_lazy("Second factor added")),
    "person.factor_removed": ("bad", "shield-alert", gettext_lazy("Second factor removed")),
    "person.account_linked": ("info", "user", gettext_lazy("Account of an identity provider linked")),
    "person.account_unlinked": ("bad", "user", gettext_lazy("Account of an identity provider unlinked")),
    "agent.disabled": ("hold", "bot", gettext_lazy("Agent disabled")),
    "agent.enabled": ("ok", "bot", gettext_lazy("Agent enabled")),
    "key.rotated": ("info", "key-round", gettext_lazy("Key rotated")),
    "issuer.trusted": ("ok", "fingerprint", gettext_lazy("Identity provider trusted")),
    "issuer.changed": ("info", "fingerprint", gettext_lazy("Identity provider changed")),
    "capsule.uploaded": ("info", "upload", gettext_lazy("Capsule uploaded")),
    "capsule.read": ("quiet", "download", gettext_lazy("Capsule downloaded")),
    "publisher_key.added": ("info", "key-round", gettext_lazy("Key of a publisher added")),
    "publisher_key.revoked": ("bad", "key-round", gettext_lazy("Key of a publisher revoked")),
    "publishing.changed": ("info", "settings", gettext_lazy("Rules of publishing changed")),
    "client.met": ("info", "link", gettext_lazy("Program seen for the first time")),
    "client.entered": ("info", "link", gettext_lazy("Program entered by hand")),
    "client.removed": ("hold", "unplug", gettext_lazy("Program removed")),
    "connection.opened": ("ok", "link", gettext_lazy("Program connected")),
    "connection.refused": ("bad", "ban", gettext_lazy("Connection of a program refused")),
    "connection.reuse_detected": ("bad", "triangle-alert", gettext_lazy("Token used twice: program disconnected")),
    "connection.ended": ("hold", "unplug", gettext_lazy("Program disconnected")),
    "connection.stepped_up": ("info", "link", gettext_lazy("Connected program may do more")),
    "account_server.met": ("info", "link", gettext_lazy("Account server met")),
    "account_server.entered": ("info", "lock", gettext_lazy("Client at an account server entered")),
    "server_account.requested": ("warn", "hourglass", gettext_lazy("Server account requested")),
    "server_account.connected": ("ok", "link", gettext_lazy("Server account connected")),
    "server_account.allowed": ("info", "handshake", gettext_lazy("Agents let use a server account")),
    "server_account.refreshed": ("info", "repeat", gettext_lazy("Tokens of a server account refreshed")),
    "server_account.ended": ("hold", "unplug", gettext_lazy("Server account ended")),
    "connection_rule.set": ("info", "clock", gettext_lazy("Lifetimes of connections set")),
    "assertion_rule.set": ("info", "fingerprint", gettext_lazy("Identity provider may vouch for people")),
    "assertion_rule.ended": ("bad", "fingerprint", gettext_lazy("Identity provider vouches for nobody any more")),
    "issuer.distrusted": ("bad", "fingerprint", gettext_lazy("Trust in an identity provider ended")),
    "identity.mapped": ("info", "link", gettext_lazy("Subject mapped to an agent")),
    "identity.unmapped": ("bad", "unplug", gettext_lazy("Subject mapping removed")),
    "notification.set": ("info", "message-square", gettext_lazy("Channel set up")),
    "notification.ended": ("hold", "message-square", gettext_lazy("Channel ended")),
    "configuration.applied": ("info", "settings", gettext_lazy("Configuration applied")),
    "configuration.exported": ("info", "download", gettext_lazy("Configuration exported")),
    "master_keys.rotated": ("info", "key-round", gettext_lazy("Master key rotated")),
    "log_key.added": ("info", "key-round", gettext_lazy("Signing key of the logs added")),
    "log_key.retired": ("quiet", "key-round", gettext_lazy("Signing key of the logs retired")),
    "log.archived": ("ok", "archive", gettext_lazy("Log archived")),
    "key.created": ("info", "key-round", gettext_lazy("Key created")),
    "key.revoked": ("bad", "key-round", gettext_lazy("Key revoked")),
    "sink.made": ("info", "arrow-right", gettext_lazy("Event sink created")),
    "sink.paused": ("hold", "circle-pause", gettext_lazy("Event sink paused")),
    "sink.resumed": ("ok", "play", gettext_lazy("Event sink resumed")),
    "sink.refused": ("bad", "unplug", gettext_lazy("Event sink refused further events")),
    "sink.rotated": ("info", "key-round", gettext_lazy("Secret of an event sink rotated")),
    "sink.tested": ("quiet", "arrow-right", gettext_lazy("Event sink tested")),
    "sink.ended": ("hold", "circle-stop", gettext_lazy("Event sink ended")),
    "anchor.refused": ("bad", "triangle-alert", gettext_lazy("An anchor saw a different history")),
    "anchor.agreed": ("ok", "stamp", gettext_lazy("An anchor agrees again")),
    "erasure.asked": ("warn", "lock", gettext_lazy("Erasure of a person requested")),
    "subject.erased": ("warn", "lock", gettext_lazy("A person's values made unreadable")),
    "words.erased": ("warn", "lock", gettext_lazy("Texts about a person removed")),
    "erasure.finished": ("ok", "lock", gettext_lazy("Erasure finished")),
    "retention.set": ("info", "timer", gettext_lazy("Retention set")),
    "retention.applied": ("hold", "timer", gettext_lazy("Old values removed")),
    "snapshot.read": ("warn", "eye", gettext_lazy("Stored values revealed")),
    "export.made": ("info", "archive", gettext_lazy("Export requested")),
    "export.finished": ("ok", "archive", gettext_lazy("Export finished")),
    "export.failed": ("bad", "circle-x", gettext_lazy("Export failed")),
    "export.cancelled": ("hold", "circle-stop", gettext_lazy("Export cancelled")),
    "export.read": ("warn", "eye", gettext_lazy("Export downloaded")),
    "export.expired": ("hold", "calendar-clock", gettext_lazy("Export expired")),
    "verification.asked": ("info", "search", gettext_lazy("Verification requested")),
    "verification.passed": ("ok", "stamp", gettext_lazy("Log verified")),
    "verification.failed": ("bad", "triangle-alert", gettext_lazy("Log does not verify")),
    "verification.closed": ("ok", "stamp", gettext_lazy("Finding no longer present")),
}
SNAPSHOT: dict[str, Text] = {
    "input": gettext_lazy("Arguments"),
    "output": gettext_lazy("Result"),
    "error": gettext_lazy("Error"),
    "logs": gettext_lazy("Output of the process"),
    "segment": gettext_lazy("Progress messages, part"),
    "replay": gettext_lazy("Output of a replay"),
    "live": gettext_lazy("Current progress messages"),
}
BUMP: dict[str, Text] = {
    "none": gettext_lazy("nothing"),
    "patch": gettext_lazy("a new patch"),
    "minor": gettext_lazy("a new minor"),
    "major": gettext_lazy("a new major"),
}
# Between the parts of what a page puts together.
MARKS: dict[str, Text] = {
    "comma": pgettext_lazy("between the parts of a list", ", "),
    "colon": pgettext_lazy("before what it is about", ": "),
    "semicolon": pgettext_lazy("between two statements", "; "),
    "stop": pgettext_lazy("at the end of a sentence", "."),
}
# By which way a call came in.
ORIGIN: dict[str, Text] = {
    "api": pgettext_lazy("way in of a call", "API"),
    "llm": pgettext_lazy("way in of a call", "a model’s proposal"),
    "mcp": pgettext_lazy("way in of a call", "MCP"),
    "system": pgettext_lazy("way in of a call", "the hub itself"),
}
# Of what takes a capability away from a call.
CAPABILITY_BOUND: dict[str, Text] = {
    "grant": gettext_lazy("Grant"),
    "policy": gettext_lazy("Policy"),
    "installation": gettext_lazy("Installation"),
}
TONE_ICONS = {
    "ok": "circle-check",
    "warn": "triangle-alert",
    "bad": "circle-alert",
    "hold": "circle-pause",
    "info": "info",
    "quiet": "info",
}


def read_outcome(state: str, reason: str) -> str:
    """The word for a call in this state: what a tool refuses lawfully has not failed."""
    refused = state == "failed" and reason and find_problem_class(reason).refusal_of_tool
    return "tool_refused" if refused else state


def number(value: float | None) -> str:
    """Grouped by thousands."""
    return NO_VALUE if value is None else format_number(value)


def money(micros: int | None, currency: str) -> str:
    """Millionths of a currency as people read an amount: small ones with more places, for a call may cost less than a cent."""
    if micros is None:
        return NO_VALUE
    places = 2 if not micros or abs(micros) >= 1_000_000 else 4 if abs(micros) >= 1000 else 6
    return f"{format_number(Decimal(micros) / 1_000_000, places)} {currency}"


def size(count: int | None) -> str:
    """Bytes, in units of 1,024."""
    if count is None:
        return NO_VALUE
    amount, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while round(amount, 1) >= 1024 and len(units) > 1:  # as it is written
        amount /= 1024
        units.pop(0)
    return f"{format_number(amount, 0 if amount.is_integer() else 1)} {units[0]}"


def dur(ms: float | None) -> str:
    """A duration given in milliseconds."""
    if ms is None:
        return NO_VALUE
    if round(ms) < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 59.995:  # from there on it would be written 60.00 s
        return f"{format_number(seconds, 2)} s"
    seconds = round(seconds, 1)
    if seconds < 3600:
        tenths = round(seconds % 60, 1)
        rest = format_number(tenths, 0 if tenths.is_integer() else 1)
        return _("%(m)d m %(s)s s") % {"m": seconds // 60, "s": rest}
    if seconds < 172_800:
        return _("%(h)d h %(m)d m") % {"h": seconds // 3600, "m": seconds % 3600 // 60}
    days = round(seconds / 86_400)
    return ngettext("%(d)d day", "%(d)d days", days) % {"d": days}


def span(seconds: int) -> str:
    """A length of time that a person chose: a day, 90 minutes."""
    unit = next((unit for unit in (86_400, 3600, 60) if seconds and seconds % unit == 0), 1)
    n = int(seconds // unit)
    match unit:
        case 86_400:
            return ngettext("%(d)d day", "%(d)d days", n) % {"d": n}
        case 3600:
            return ngettext("%(n)d hour", "%(n)d hours", n) % {"n": n}
        case 60:
            return ngettext("%(n)d minute", "%(n)d minutes", n) % {"n": n}
        case _:
            return dur(seconds * 1000)


def per(seconds: int) -> str:
    """Of a limit: how often it begins anew."""
    words = {60: _("a minute"), 3600: _("an hour"), 86_400: _("a day"), 604_800: _("a week")}
    return words.get(seconds) or _("per %(span)s") % {"span": span(seconds)}


def seconds(amount: float) -> str:
    """A limit given in seconds, whatever their number: 0.5 s, 30 s."""
    return f"{format_number(int(amount) if float(amount).is_integer() else amount)} s"


def span_ms(ms: float) -> str:
    """A limit of time: 30 s, not 30.00 s."""
    if ms >= 60_000 and ms % 60_000 == 0:
        return span(int(ms // 1000))
    return f"{format_number(int(ms // 1000))} s" if 1000 <= ms < 60_000 and ms % 1000 == 0 else dur(ms)


def format_zone(local: datetime) -> str:
    """``UTC+8``, as the top bar shows it."""
    offset = local.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    hours, rest = divmod(abs(minutes), 60)
    return "UTC" if not minutes else f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02d}' if rest else ''}"


def _choose_unit(seconds: float) -> tuple[str, int]:
    unit = next((unit for unit, span in (("s", 60), ("m", 3600), ("h", 86_400)) if seconds < span), "d")
    return unit, int(seconds // {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit])


def format_wait(since: datetime, now: datetime) -> str:
    """How long something waits that came at a moment."""
    unit, n = _choose_unit(max((now - since).total_seconds(), 0))
    match unit:
        case "s":
            said = ngettext("waiting for %(n)d s", "waiting for %(n)d s", n)
        case "m":
            said = ngettext("waiting for %(n)d min", "waiting for %(n)d min", n)
        case "h":
            said = ngettext("waiting for %(n)d h", "waiting for %(n)d h", n)
        case _:
            said = ngettext("waiting for %(n)d day", "waiting for %(n)d days", n)
    return said % {"n": n}


def format_relative_time(value: datetime, now: datetime) -> str:
    """How long before or after ``now`` the moment is."""
    seconds = (now - value).total_seconds()
    if abs(seconds) < 5:
        return _("just now")
    unit, n = _choose_unit(abs(seconds))
    match unit, seconds > 0:
        case "s", True:
            said = ngettext("%(n)d s ago", "%(n)d s ago", n)
        case "m", True:
            said = ngettext("%(n)d min ago", "%(n)d min ago", n)
        case "h", True:
            said = ngettext("%(n)d h ago", "%(n)d h ago", n)
        case _, True:
            said = ngettext("%(n)d day ago", "%(n)d days ago", n)
        case "s", _:
            said = ngettext("in %(n)d s", "in %(n)d s", n)
        case "m", _:
            said = ngettext("in %(n)d min", "in %(n)d min", n)
        case "h", _:
            said = ngettext("in %(n)d h", "in %(n)d h", n)
        case _:
            said = ngettext("in %(n)d day", "in %(n)d days", n)
    return said % {"n": n}
