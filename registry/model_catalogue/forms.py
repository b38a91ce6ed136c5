"""Forms of models: which model an alias means, and what it can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from kernel.components.forms import ReasonForm, add_problem
from kernel.components.sentences import translate_sentence
from llm.model_features import CHAT_PARAMETERS, CONTENT, EMBED_PARAMETERS, Treatment
from registry.model_providers.manifests import DEFAULT_OUTPUT_TOKENS, MAX_TOKENS, ModelTerms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.forms import BoundField

    from kernel.problems import Problem

OPERATION_WORDS = [
    ("chat", gettext_lazy("Chat")),
    ("embed", gettext_lazy("Vectors of texts (embed)")),
    ("rerank", gettext_lazy("Ranking of texts (rerank)")),
]
UNPRICED_WORDS = [
    ("refuse", gettext_lazy("Refuse its calls")),
    ("count", gettext_lazy("Count its tokens only")),
]
CALLER_TOOLS_WORDS = [
    ("refuse", gettext_lazy("Tools of the hub only")),
    ("allow", gettext_lazy("Tools that callers describe as well; the hub never runs them")),
]
TREATMENT_WORDS = {
    Treatment.PASSED: gettext_lazy("Passed on"),
    Treatment.WARNED: gettext_lazy("Left out, with a warning"),
    Treatment.REFUSED: gettext_lazy("Refused"),
}
FEATURES = (*CONTENT, *CHAT_PARAMETERS, *EMBED_PARAMETERS)
_plain = {"autocomplete": "off", "spellcheck": "false"}


class ModelTermsForm(forms.Form):
    """``providers``: those that a new model may be of; None: of a model that is there."""

    provider = forms.ChoiceField(label=gettext_lazy("Provider"))
    alias = forms.CharField(
        max_length=40,
        label=gettext_lazy("Alias"),
        help_text=gettext_lazy("What agents know it by: lower-case letters, digits and underscores."),
        widget=forms.TextInput(attrs=_plain),
    )
    model = forms.CharField(
        max_length=200, label=gettext_lazy("Name at the provider"), widget=forms.TextInput(attrs=_plain)
    )
    operation = forms.ChoiceField(choices=OPERATION_WORDS, label=gettext_lazy("Operation"))
    window_tokens = forms.IntegerField(
        required=False,
        max_value=MAX_TOKENS,
        label=gettext_lazy("Window, in tokens"),
        help_text=gettext_lazy("Question and answer together. Leave empty where it is not known."),
    )
    max_output_tokens = forms.IntegerField(
        required=False, max_value=MAX_TOKENS, label=gettext_lazy("Longest answer, in tokens")
    )
    default_output_tokens = forms.IntegerField(
        initial=DEFAULT_OUTPUT_TOKENS,
        max_value=MAX_TOKENS,
        label=gettext_lazy("Longest answer where a request names no limit"),
        help_text=gettext_lazy("Budgets reserve so much for each call."),
    )
    unpriced = forms.ChoiceField(choices=UNPRICED_WORDS, label=gettext_lazy("Where no price is known"))
    fallbacks = forms.CharField(
        required=False,
        label=gettext_lazy("Fallbacks"),
        help_text=gettext_lazy("Ids of models that are asked in its place, one per line, in this order."),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
    )
    caller_tools = forms.ChoiceField(choices=CALLER_TOOLS_WORDS, label=gettext_lazy("Tools that it may be shown"))
    reason = ReasonForm.base_fields["reason"]

    def __init__(self, *args: Any, providers: Iterable[str] | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if providers is None:
            del self.fields["provider"], self.fields["alias"]
        else:
            self.fields["provider"].choices = [(each, each) for each in providers]  # type: ignore[attr-defined]
        for name in FEATURES:
            words = TREATMENT_WORDS if name not in CONTENT else {
                each: word for each, word in TREATMENT_WORDS.items() if each is not Treatment.WARNED
            }  # fmt: skip
            usual = TREATMENT_WORDS[Treatment.REFUSED if name in CONTENT else Treatment.WARNED]
            choices = [
                ("", gettext("— (%(usual)s)") % {"usual": usual}),
                *((str(each), word) for each, word in words.items()),
            ]
            self.fields[f"feature:{name}"] = forms.ChoiceField(choices=choices, required=False, label=name)
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])

    def plain_fields(self) -> list[BoundField]:
        return [self[name] for name in self.fields if not name.startswith("feature:") and name != "reason"]

    def feature_fields(self) -> list[BoundField]:
        return [self[name] for name in self.fields if name.startswith("feature:")]

    def has_feature_errors(self) -> bool:
        """What is wrong must not be folded away."""
        return any(name.startswith("feature:") for name in self.errors)

    @staticmethod
    def initial_of(terms: ModelTerms) -> dict[str, Any]:
        """What is said of it now, as the fields show it."""
        values: dict[str, Any] = {**terms, "fallbacks": "\n".join(terms["fallbacks"])}
        return values | {f"feature:{name}": each for name, each in terms["features"].items()}

    def terms(self) -> dict[str, Any]:
        """As the services take them."""
        data = self.cleaned_data
        plain = ("model", "operation", "window_tokens", "max_output_tokens", "default_output_tokens", "unpriced")
        said = {name: data[f"feature:{name}"] for name in FEATURES}
        return {name: data[name] for name in (*plain, "caller_tools")} | {
            "fallbacks": [each.strip() for each in data["fallbacks"].splitlines() if each.strip()],
            "features": {name: each for name, each in said.items() if each},
        }

    def add_findings(self, problem: Problem) -> None:
        """Show each finding at its field, or above the form."""
        for finding in problem.details.get("findings", []):
            head, _, rest = finding["pointer"].strip("/").partition("/")
            name = f"feature:{rest}" if head == "features" else head
            self.add_error(name if name in self.fields else None, translate_sentence(finding["message"]))
        if not problem.details.get("findings"):
            add_problem(self, problem)
