"""Provider factory: are models found by id and by alias, and can others add kinds of providers?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from kernel.problems import NotFound, SchemaInvalid
from llm.messages import Text, UserMessage
from llm.provider_factory import ProviderConfig, ProviderFactory
from llm.providers.kinds import MODULES
from llm.requests import ChatRequest
from tests.support.foreign_kinds import installed_foreign_kinds
from tests.support.scripted_models import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

HELLO = ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),))


def factory() -> ProviderFactory:
    made = ProviderFactory({"scripted": ScriptedProvider})
    made.register("local", ProviderConfig("scripted", options={"says": "old"}))
    return made


@pytest.mark.req("LLM-10", "LLM-1")
def test_a_provider_is_registered_under_a_name_and_its_models_are_found_by_their_ids() -> None:
    made = factory()
    provider = made.register("second", ProviderConfig("scripted", base_url="http://127.0.0.1:1", key="canary"))

    assert isinstance(provider, ScriptedProvider)
    assert provider.cfg.base_url == "http://127.0.0.1:1"
    assert "canary" not in repr(provider.cfg)
    assert made.get_chat_model("second:script") is provider.chat
    assert made.get_embed_model("second:script") is provider.embedder
    assert made.get_rerank_model("second:script") is provider.ranker
    assert made.get_chat_model("local:script") is not provider.chat


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("name", ["nobody:script", "local:other", "main", "", "local:", "LOCAL:script", "a b"])
def test_a_model_that_is_not_there_is_refused_by_name(name: str) -> None:
    made = factory()
    for find in (made.get_chat_model, made.get_embed_model, made.get_rerank_model):
        with pytest.raises(NotFound):
            find(name)


@pytest.mark.req("LLM-10")
def test_providers_and_aliases_change_while_a_model_is_in_use() -> None:
    made = factory()
    made.set_aliases({"main": "local:script"})
    held = made.get_chat_model("main")

    made.register("local", ProviderConfig("scripted", options={"says": "new"}))
    assert anyio.run(held.generate, HELLO).text == "old"
    assert anyio.run(made.get_chat_model("main").generate, HELLO).text == "new"

    made.set_aliases({"other": "local:script"})
    assert made.get_chat_model("other") is made.get_chat_model("local:script")
    with pytest.raises(NotFound):
        made.get_chat_model("main")


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize(
    ("aliases", "pointer"),
    [({"ok": "local:script", "bad": "script"}, "/aliases/bad"), ({"a/b": "local:script"}, "/aliases/a~1b")],
)
def test_a_wrong_alias_changes_none(aliases: dict[str, str], pointer: str) -> None:
    made = factory()
    made.set_aliases({"main": "local:script"})

    with pytest.raises(SchemaInvalid) as refused:
        made.set_aliases(aliases)

    assert [each["pointer"] for each in refused.value.details["findings"]] == [pointer]
    assert made.get_chat_model("main")
    with pytest.raises(NotFound):
        made.get_chat_model("ok")


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("name", ["", "a:b", "Local", "1st"])
def test_a_provider_has_a_name_that_a_model_id_can_begin_with(name: str) -> None:
    with pytest.raises(SchemaInvalid):
        factory().register(name, ProviderConfig("scripted"))


@pytest.mark.req("LLM-10")
def test_other_distributions_add_kinds_and_a_broken_one_harms_nobody_else(tmp_path: Path) -> None:
    made = factory()

    with installed_foreign_kinds(tmp_path):
        made.register("theirs", ProviderConfig("others", options={"says": "from others"}))

        assert anyio.run(made.get_chat_model("theirs:script").generate, HELLO).text == "from others"
        with pytest.raises(SchemaInvalid, match=r"broken cannot be loaded \(RuntimeError\)"):
            made.register("b", ProviderConfig("broken"))
        with pytest.raises(SchemaInvalid, match=r"There are: (\w+, )*broken, (\w+, )*others, (\w+, )*scripted"):
            made.register("n", ProviderConfig("nothing"))


@pytest.mark.req("LLM-10")
def test_a_kind_of_this_program_says_what_must_be_installed_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_pydantic_ai.py").write_text("import pydantic_ai.models.nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(MODULES, "needy", "needs_pydantic_ai")

    with pytest.raises(SchemaInvalid, match=r"not installed: requirements-models\.lock"):
        factory().register("n", ProviderConfig("needy"))
