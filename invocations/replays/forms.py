"""Forms of replays: what people fill in to have calls replayed."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from access.models import PolicyState, PolicyVersion
from invocations.replays.labels import WHAT
from invocations.replays.models import OF_PERIODS, What
from invocations.replays.services import MOST_READ, MOST_RUNS, may_try_unreviewed
from kernel.components.forms import ReasonForm
from registry.models import ToolVersion, VersionState

if TYPE_CHECKING:
    from invocations.models import Invocation
    from kernel.principal import Principal

DAY = {"type": "date"}
LAST_DAY = date.max - timedelta(days=1)  # the calendar has none behind the next


class ReplayForm(ReasonForm):
    version = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("Choose another one to see what it would have answered."),
    )
    todays_image = forms.BooleanField(
        required=False,
        label=gettext_lazy("Use the current sandbox image"),
        help_text=gettext_lazy("If the image that the call ran in no longer exists."),
    )
    field_order = ("version", "todays_image", "reason")

    def __init__(self, data: Any, *, invocation: Invocation, version: str = "", by: Principal) -> None:
        """``version``: chosen beforehand."""
        super().__init__(data, initial={"version": version})
        recorded = invocation.version
        word = gettext("recorded")
        choices = [("", f"{recorded.version} · {word}" if recorded else word)]
        if recorded is not None:
            rows = ToolVersion.objects.filter(tool=recorded.tool, review_state=VersionState.APPROVED, yanked_at=None)
            others = rows.exclude(pk=recorded.pk).order_by("-id").values_list("version", flat=True)[:50]
            choices += [(each, each) for each in others]
            waiting = ToolVersion.objects.filter(tool=recorded.tool, review_state=VersionState.SUBMITTED)
            word = gettext("under review")
            choices += [
                (each.version, f"{each.version} · {word}")
                for each in waiting.select_related("tool").order_by("-id")[:50]
                if may_try_unreviewed(each, by=by)
            ]
        self.fields["version"].choices = choices  # type: ignore[attr-defined]


class PeriodForm(ReasonForm):
    what = forms.ChoiceField(
        choices=[(each, WHAT[each]) for each in OF_PERIODS], widget=forms.RadioSelect, label=gettext_lazy("What")
    )
    since = forms.DateField(widget=forms.DateInput(attrs=DAY), label=gettext_lazy("From"))
    until = forms.DateField(
        widget=forms.DateInput(attrs=DAY), label=gettext_lazy("To"), help_text=gettext_lazy("This day is included.")
    )
    tool = forms.CharField(
        required=False, max_length=128, label=gettext_lazy("Tool"), help_text=gettext_lazy("Empty: all tools.")
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=MOST_READ,
        initial=100,
        label=gettext_lazy("At most this many calls"),
        help_text=gettext_lazy("Runs: up to 1,000."),
    )
    policy = forms.ModelChoiceField(
        queryset=PolicyVersion.objects.none(),
        required=False,
        label=gettext_lazy("Policy"),
        empty_label=gettext_lazy("The recorded one"),
        help_text=gettext_lazy("Decide with this policy, which may be a draft."),
    )
    version = forms.CharField(
        required=False,
        max_length=64,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("Run this version of the tool instead of the recorded one."),
    )
    field_order = ("what", "since", "until", "tool", "most", "policy", "version", "reason")

    def __init__(self, data: Any, *, by: Principal) -> None:
        super().__init__(data, initial={"what": What.DECISIONS})
        if by.may("policies.view"):
            rows = PolicyVersion.objects.visible_to(by).exclude(state=PolicyState.DISCARDED).order_by("-id")
            self.fields["policy"].queryset = rows  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        since, until = said.get("since"), said.get("until")
        if since and until and since > until:
            self.add_error("until", gettext_lazy("A period must end after it begins."))
        if said.get("what") == What.RUNS and (said.get("most") or 0) > MOST_RUNS:
            self.add_error("most", gettext_lazy("Runs: up to 1,000."))
        return said

    def period(self) -> dict[str, Any]:
        """As :func:`invocations.replays.services.replay_period` takes it."""
        said = self.cleaned_data
        named = {name: said[name] for name in ("what", "tool", "most", "version", "reason")}
        policy = said["policy"]
        until = min(said["until"], LAST_DAY) + timedelta(days=1)
        return named | {
            "since": timezone.make_aware(datetime.combine(said["since"], time())),
            "until": timezone.make_aware(datetime.combine(until, time())),
            "policy_id": policy.pk if policy else None,
        }
