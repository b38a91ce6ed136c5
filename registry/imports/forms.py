"""Forms of imports: how people name a source, and correct a draft."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy

from kernel.components.manifest_words import EFFECT, RISK_LEVEL
from kernel.components.sentences import translate_sentence
from kernel.http.parsers import read_json
from kernel.problems import Malformed
from unitools.brought_npm import list_programs, read_asked_package
from unitools.expressions import EFFECTS, SAFETY_CLASSES
from unitools.npm_locks import MAX_LOCK_BYTES, NpmLockUnfit, read_package_lock
from unitools.npm_names import is_of_npm
from unitools.openapi.documents import MAX_DOCUMENT_BYTES
from unitools.server_secrets import build_secret_entry, describe_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import QueryDict

    from registry.imports.drafts import ImportDraft
    from registry.imports.known_sources import KnownSource
    from registry.imports.models import Import

MAX_TEXT = 12_000
MAX_MANIFEST = 600_000


class LinesField(forms.CharField):
    """One entry a line; empty lines are none."""

    def __init__(self, **more: Any) -> None:
        attrs = {"rows": 3, "spellcheck": "false"}
        super().__init__(required=False, max_length=MAX_TEXT, strip=False, widget=forms.Textarea(attrs=attrs), **more)

    def clean(self, value: Any) -> list[str]:
        text: str = super().clean(value)
        return [line.strip() for line in text.splitlines() if line.strip()]


class _GroupForm(forms.Form):
    group = forms.CharField(
        required=False,
        max_length=100,
        label=gettext_lazy("Group"),
        help_text=gettext_lazy(
            "What the tools stand under, such as acme.shop. Made from the name of the source if empty."
        ),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )


class SourceDocumentForm(_GroupForm):
    file = forms.FileField(
        label=gettext_lazy("OpenAPI document"),
        help_text=gettext_lazy(
            "OpenAPI 3.1, 3.0 or Swagger 2.0, as JSON or YAML, at most 32 MiB. It is never fetched."
        ),
        widget=forms.FileInput(attrs={"accept": ".json,.yaml,.yml,application/json,application/yaml"}),
    )
    secrets = LinesField(
        label=gettext_lazy("Credentials"),
        help_text=gettext_lazy(
            "NAME or NAME=HOW, one a line: bearer, basic, header:X-Key, query:key, cookie:sid, or a security scheme of the "
            "document. Or account alone: the service is asked as the person whom a call is for. Never the value itself."
        ),
    )
    servers = LinesField(
        label=gettext_lazy("Server"),
        help_text=gettext_lazy("Its https address, where the document names several, one with variables, or none."),
    )
    idempotency_header = forms.CharField(
        required=False,
        max_length=100,
        label=gettext_lazy("Header of a repeated call’s key"),
        help_text=gettext_lazy("Where the service takes one: such writes are repeated safely."),
    )
    field_order = ["file", "secrets", "group", "servers", "idempotency_header"]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_DOCUMENT_BYTES:
            raise forms.ValidationError(gettext_lazy("The file is larger than 32 MiB."))
        return file

    @staticmethod
    def initial_of(row: Import) -> dict[str, Any]:
        said = row.source["choices"]
        return {
            "group": row.group,
            "secrets": "\n".join(said["secrets"]),
            "servers": "\n".join(said["servers"]),
            "idempotency_header": said["idempotency_header"],
        }

    @staticmethod
    def initial_of_known(known: KnownSource) -> dict[str, Any]:
        return {
            "group": known.group,
            "secrets": "\n".join(known.secrets),
            "servers": "\n".join(known.servers),
        }


class RemoteForm(_GroupForm):
    url = forms.CharField(
        max_length=500,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("The https address of a server that speaks MCP over HTTP."),
        widget=forms.URLInput(attrs={"placeholder": "https://mcp.example.com/mcp", "spellcheck": "false"}),
    )
    secret = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Credential"),
        help_text=gettext_lazy("NAME, NAME=basic or NAME=header:X-Key. Left out, nothing is sent."),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "placeholder": "SHOP_TOKEN"}),
    )
    token = forms.CharField(
        required=False,
        max_length=16_384,
        strip=False,
        label=gettext_lazy("Token to read the list with"),
        help_text=gettext_lazy("Sent to this server once, and kept nowhere. Calls use the secret of the installation."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    field_order = ["url", "secret", "token", "group"]

    @staticmethod
    def initial_of(row: Import) -> dict[str, Any]:
        secret = next((_write_credential(each) for each in row.source["credentials"]), "")
        return {"group": row.group, "url": row.source["url"], "secret": secret}

    @staticmethod
    def initial_of_known(known: KnownSource) -> dict[str, Any]:
        return {"group": known.group}


def _write_credential(said: dict[str, str]) -> str:
    if said["name"] == "Authorization":
        return said["secret"] if said["scheme"] == "bearer" else f"{said['secret']}={said['scheme']}"
    return f"{said['secret']}=header:{said['name']}"


class PackageForm(_GroupForm):
    package = forms.CharField(
        max_length=100,
        label=gettext_lazy("Package"),
        help_text=gettext_lazy("Its name on the package index of this hub, or npm:NAME for one of npm."),
        widget=forms.TextInput(attrs={"placeholder": "mcp-server-time", "spellcheck": "false", "autocomplete": "off"}),
    )
    version = forms.CharField(
        required=False,
        max_length=61,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("The newest if empty."),
    )
    lock = forms.FileField(
        required=False,
        label=gettext_lazy("Lock of a package of npm"),
        help_text=gettext_lazy(
            "The package-lock.json that npm install --package-lock-only writes for it. A hub does not run npm."
        ),
    )
    constraints = LinesField(
        label=gettext_lazy("Constraints"),
        help_text=gettext_lazy(
            "For packages that come along, one a line: mcp<2 for servers that were written for an older one."
        ),
    )
    arguments = LinesField(
        label=gettext_lazy("Arguments"), help_text=gettext_lazy("Of the server, one a line, such as --db-path.")
    )
    environment = LinesField(
        label=gettext_lazy("Environment"),
        help_text=gettext_lazy("NAME=VALUE, one a line. Secrets are named below, and their values never stand here."),
    )
    secrets = LinesField(
        label=gettext_lazy("Secrets in the server’s environment"),
        help_text=gettext_lazy("Their names, one a line, such as API_KEY. The server sees the value."),
    )
    hosts = LinesField(
        label=gettext_lazy("Hosts"),
        help_text=gettext_lazy("What the tools may reach by https, one a line. Nothing otherwise."),
    )
    keeps = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Files that it keeps in /data"),
        choices=[
            ("", gettext_lazy("None: each call finds nothing")),
            ("tenant", gettext_lazy("Of the tenant, whoever calls")),
            ("agent", gettext_lazy("Of each agent alone")),
            ("person", gettext_lazy("Of each person that an agent calls for")),
        ],
    )
    programs = LinesField(
        label=gettext_lazy("Programs"),
        help_text=gettext_lazy("That the server starts, one a line, such as git. Such a tool needs a consent."),
    )
    trees = LinesField(
        label=gettext_lazy("Folders of your files"),
        help_text=gettext_lazy("That the tools may read and change, one a line, such as /data/repository."),
    )
    browser = forms.BooleanField(required=False, label=gettext_lazy("It drives the sandbox’s browser (npm only)"))
    script = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Program"),
        help_text=gettext_lazy("Where the package brings several."),
    )
    FOLDED = (
        "constraints",
        "arguments",
        "environment",
        "secrets",
        "keeps",
        "programs",
        "trees",
        "browser",
        "script",
        "group",
    )
    field_order = ["package", "version", "lock", "hosts", *FOLDED]

    def __init__(self, *args: Any, lock: Sequence[str] = (), **more: Any) -> None:
        """``lock``: the lines that are taken where no file is sent: of the known source, or of the import before."""
        super().__init__(*args, **more)
        self._lines = list(lock)

    @property
    def has_hidden_errors(self) -> bool:
        """Whether something is wrong with a field that is folded away."""
        return bool({*self.FOLDED} & self.errors.keys())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if "lock" in self.errors or "package" in self.errors:
            return data
        if (file := data["lock"]) is None:
            data["lock"] = self._lines if is_of_npm(data["package"]) else []
            return data
        if file.size > MAX_LOCK_BYTES:
            self.add_error("lock", gettext_lazy("The file is larger than 8 MiB."))
            return data
        try:
            text = file.read().decode()
            data["lock"] = read_package_lock(text)
            if not data["script"]:
                name, _ = read_asked_package(data["package"].strip())
                data["script"] = _choose_program(list_programs(text, name), name)
        except (NpmLockUnfit, ValueError) as error:
            self.add_error("lock", translate_sentence(str(error)))
        return data

    @staticmethod
    def initial_of(row: Import) -> dict[str, Any]:
        source, start = row.source, row.source["start"]
        return {
            "group": row.group,
            "package": source["package"],
            "version": source["version"],
            "constraints": "\n".join(source["constraints"]),
            **{each: "\n".join(source.get(each, [])) for each in ("hosts", "programs", "trees")},
            **{each: source.get(each) for each in ("keeps", "browser")},
            "arguments": "\n".join(start.get("arguments", [])),
            "environment": "\n".join(
                f"{each['name']}={each['value']}" for each in start.get("environment", []) if "value" in each
            ),
            "secrets": "\n".join(each["name"] for each in start.get("environment", []) if "secret" in each),
            "script": start.get("script", ""),
        }

    @staticmethod
    def initial_of_known(known: KnownSource) -> dict[str, Any]:
        return {
            "group": known.group,
            "package": known.package,
            "version": known.version,
            **{
                each: "\n".join(getattr(known, each))
                for each in ("constraints", "arguments", "environment", "programs", "trees")
            },
            **{each: getattr(known, each) for each in ("keeps", "browser", "script")},
        }


def _choose_program(programs: dict[str, str], package: str) -> str:
    """The one that the package brings, or the one of its name; empty: a person says which."""
    own = package.rpartition("/")[2]
    return own if own in programs else next(iter(programs)) if len(programs) == 1 else ""


class ToolDraftForm(forms.Form):
    """What is corrected most; the whole manifest is another form."""

    description = forms.CharField(
        max_length=4000,
        label=gettext_lazy("Description, as agents read it"),
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    side_effect = forms.ChoiceField(
        label=gettext_lazy("Side effect"), choices=[(each, EFFECT[each]) for each in EFFECTS]
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Why another effect than proposed"),
        help_text=gettext_lazy("Needed where you change it. Kept as evidence."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    safety_class = forms.ChoiceField(
        label=gettext_lazy("Risk"), choices=[(each, RISK_LEVEL[each]) for each in SAFETY_CLASSES]
    )
    timeout_ms = forms.IntegerField(min_value=1, max_value=3_600_000, label=gettext_lazy("Time limit in milliseconds"))
    hosts = LinesField(
        label=gettext_lazy("Hosts"),
        help_text=gettext_lazy("What the tool may reach by https, one a line. Nothing otherwise."),
    )
    secrets = LinesField(
        label=gettext_lazy("Secrets in the server’s environment"),
        help_text=gettext_lazy("Their names, one a line, such as API_KEY. The server sees the value."),
    )

    def __init__(self, data: QueryDict | None = None, *, draft: ImportDraft) -> None:
        super().__init__(data, initial=_read_fields(draft["document"]) | {"reason": draft["reason"]})
        if draft["document"]["implementation"].get("kind") != "mcp_stdio":
            del self.fields["hosts"], self.fields["secrets"]

    def clean_description(self) -> str:
        """A browser ends each line of a form with a carriage return, which no reader of the manifest is to be shown."""
        return str(self.cleaned_data["description"]).replace("\r\n", "\n")

    def apply_to(self, document: dict[str, Any]) -> dict[str, Any]:
        """The manifest with what was typed."""
        data = self.cleaned_data
        plain = ("description", "side_effect", "safety_class", "timeout_ms")
        made = document | {name: data[name] for name in plain}
        if "hosts" in self.fields:
            made = _put_hosts(made, data["hosts"])
            made = _put_secrets(made, data["secrets"], data["hosts"])
        return made


def _read_fields(document: dict[str, Any]) -> dict[str, Any]:
    server = document["implementation"].get("server", {})
    return {
        **{each: document.get(each) for each in ("description", "side_effect", "safety_class", "timeout_ms")},
        "hosts": "\n".join(str(each.get("host")) for each in document.get("capabilities", {}).get("net", [])),
        "secrets": "\n".join(each["secret"] for each in server.get("environment", []) if "secret" in each),
    }


def _put_hosts(document: dict[str, Any], hosts: list[str]) -> dict[str, Any]:
    capabilities = dict(document.get("capabilities", {}))
    before = {each.get("host"): each for each in capabilities.pop("net", [])}
    if hosts:
        capabilities["net"] = [before.get(each, {"host": each}) for each in hosts]
    return {name: value for name, value in document.items() if name != "capabilities"} | (
        {"capabilities": capabilities} if capabilities else {}
    )


def _put_secrets(document: dict[str, Any], names: list[str], hosts: list[str]) -> dict[str, Any]:
    server = dict(document["implementation"]["server"])
    before = server.pop("environment", [])
    variables: dict[str, dict[str, str]] = {}
    for name in names:
        found = [each for each in before if each.get("secret") == name] or [build_secret_entry(name)]
        variables |= {each["name"]: each for each in found}
    # The value goes of what is a secret by now.
    rest = [each for each in before if "config" in each or ("value" in each and each["name"] not in variables)]
    if environment := rest + list(variables.values()):
        server["environment"] = environment
    known = {each["name"]: each for each in document.get("secrets", [])}
    wanted = dict.fromkeys(each["secret"] for each in variables.values())
    secrets = [known.get(each, describe_secret(each) | ({"hosts": hosts} if hosts else {})) for each in wanted]
    made = {name: value for name, value in document.items() if name != "secrets"}
    made["implementation"] = document["implementation"] | {"server": server}
    return made | ({"secrets": secrets} if secrets else {})


class ManifestForm(forms.Form):
    """The whole draft as a text."""

    text = forms.CharField(
        max_length=MAX_MANIFEST,
        strip=False,
        label=gettext_lazy("Manifest"),
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "mono"}),
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Why another effect than proposed"),
        help_text=gettext_lazy("Needed where you change it. Kept as evidence."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, data: QueryDict | None = None, *, draft: ImportDraft) -> None:
        text = json.dumps(draft["document"], indent=2, ensure_ascii=False)
        super().__init__(data, initial={"text": text, "reason": draft["reason"]})

    def clean_text(self) -> Any:
        try:
            return read_json(str(self.cleaned_data["text"]).encode())
        except Malformed as problem:
            raise forms.ValidationError(translate_sentence(problem.detail)) from problem
