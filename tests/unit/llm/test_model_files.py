"""Model files: is it known of a model's file what it can do, without loading it, and is it said of a broken one what to do?"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

import pytest

from kernel.problems import Retryable
from llm.problems import ModelFileUnusable, ParameterUnsupported
from llm.providers import model_files
from llm.providers.gguf_headers import HeaderRefused, read_header
from llm.providers.model_files import inspect_file
from tests.support.gguf_files import CLS, CONTEXT, LAST, MEAN, RANK, write_encoder, write_gguf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WEIGHT = ("token_embd.weight", (4,), bytes(16))


def write_decoder(file: Path, **metadata: Any) -> Path:
    said = {"general.architecture": "llama", "llama.context_length": 8192, "llama.attention.head_count": 2}
    return write_gguf(file, said | metadata, [WEIGHT])


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize(
    ("pooling", "labels", "wanted", "operations"),
    [
        (MEAN, 0, "mean", ("embed", "rerank")),
        (CLS, 0, "cls", ("embed", "rerank")),
        (LAST, 0, "last", ("embed", "rerank")),
        (RANK, 1, "rank", ("rerank",)),
        (None, 1, "rank", ("rerank",)),  # by its head
        (None, 0, "none", ()),
        (9, 0, "none", ()),  # a way that is not known
    ],
)
def test_what_a_file_can_do_is_known_by_how_it_pools(
    tmp_path: Path, pooling: int | None, labels: int, wanted: str, operations: tuple[str, ...]
) -> None:
    file = inspect_file("mine", write_encoder(tmp_path / "m.gguf", pooling=pooling, labels=labels))

    assert (file.pooling, file.operations, file.context_tokens, file.title) == (wanted, operations, CONTEXT, "m")


@pytest.mark.req("LLM-6")
def test_what_is_said_of_a_file_stands_over_what_it_says_itself(tmp_path: Path) -> None:
    talking = write_decoder(tmp_path / "talk.gguf")
    pooling = write_decoder(tmp_path / "pool.gguf", **{"llama.pooling_type": LAST})

    assert inspect_file("talk", talking).operations == ("chat",)
    assert inspect_file("talk", talking, "mean").operations == ("embed", "rerank")
    assert inspect_file("pool", pooling).operations == ("embed", "rerank")
    assert inspect_file("pool", pooling, "none").operations == ("chat",)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("given", "operation", "sentence", "remedy"),
    [
        ({"pooling": MEAN}, "chat", "it makes vectors of texts.", "Connect it with `operation: embed`"),
        ({"pooling": RANK, "labels": 1}, "embed", "it orders texts by a query.", "options: `pooling: {mine: mean}`"),
        ({"pooling": None}, "embed", "it does not say how it pools", "options: `pooling: {mine: mean}`"),
        ({"pooling": None}, "rerank", "it does not say how it pools", "options: `pooling: {mine: mean}`"),
    ],
)
def test_what_a_file_cannot_do_is_refused_with_what_it_can(
    tmp_path: Path, given: dict[str, Any], operation: Any, sentence: str, remedy: str
) -> None:
    file = inspect_file("mine", write_encoder(tmp_path / "m.gguf", **given))

    with pytest.raises(ParameterUnsupported) as refused:
        file.check_can(operation)

    assert sentence in refused.value.detail
    assert remedy in refused.value.remedy
    assert str(tmp_path) not in refused.value.detail


def be_text(path: Path) -> None:
    path.write_text("It is none.")


def be_empty(path: Path) -> None:
    path.touch()


def be_pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")


def be_folder(path: Path) -> None:
    path.mkdir()


def be_pipe(path: Path) -> None:
    os.mkfifo(path)


def be_loop(path: Path) -> None:
    path.symlink_to(path)


def be_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def be_cut_in_the_header(path: Path) -> None:
    path.write_bytes(write_encoder(path).read_bytes()[:700])


def be_cut_in_the_weights(path: Path) -> None:
    data = write_encoder(path).read_bytes()
    path.write_bytes(data[: len(data) // 2])


def be_cut_at_once(path: Path) -> None:
    path.write_bytes(b"GGUF\3")


def be_old(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 1, 0, 0))


def be_of_many_tensors(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 2**60, 0))


def have_a_value_of_no_type(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQQ3sI", b"GGUF", 3, 0, 1, 3, b"key", 77))


def have_lists_in_a_list(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQQ3sIIQ", b"GGUF", 3, 0, 1, 3, b"key", 9, 9, 1))


def have_an_endless_list(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQQ3sIIQ", b"GGUF", 3, 0, 1, 3, b"key", 9, 8, 2**62))


def have_a_list_that_is_cut(path: Path) -> None:
    path.write_bytes(struct.pack("<4sIQQQ3sIIQ", b"GGUF", 3, 0, 1, 3, b"key", 9, 8, 1000))


def have_no_weights(path: Path) -> None:
    write_gguf(path, {"general.architecture": "llama"})


def be_adapter(path: Path) -> None:
    write_decoder(path, **{"general.type": "adapter"})


def be_eye(path: Path) -> None:
    write_gguf(path, {"general.architecture": "clip"}, [WEIGHT])


def have_no_head(path: Path) -> None:
    write_encoder(path, pooling=RANK)


def be_renamed_part(path: Path) -> None:
    write_decoder(path, **{"split.count": 2})


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: None, "is not there: put it back"),
        (be_text, "is no GGUF file"),
        (be_empty, "is empty"),
        (be_pointer, "fetch it with `git lfs pull`"),
        (be_folder, "is a folder"),
        (be_pipe, "is no regular file"),
        (be_loop, "is a link that leads nowhere"),
        (be_link_to_nothing, "is a link to a file that is not there"),
        (be_cut_in_the_header, "ends too early: copy or download it again"),
        (be_cut_in_the_weights, "ends too early: copy or download it again"),
        (be_cut_at_once, "ends too early"),
        (be_old, "is of a version of GGUF that is not read here"),
        (be_of_many_tensors, "is damaged"),
        (have_a_value_of_no_type, "is damaged"),
        (have_lists_in_a_list, "is damaged"),
        (have_an_endless_list, "is damaged"),
        (have_a_list_that_is_cut, "ends too early"),
        (have_no_weights, "holds no model"),
        (be_adapter, "is an adapter and no model: merge it"),
        (be_eye, "is the part of a model that sees"),
        (have_no_head, "has no head for that: convert it"),
        (be_renamed_part, "is one of 2 parts and was renamed"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_sentence_that_says_what_to_do(
    tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    spoil(path := tmp_path / "mine.gguf")

    with pytest.raises(ModelFileUnusable) as refused:
        inspect_file("mine", path)

    assert refused.value.detail.startswith("The model's file mine.gguf ")
    assert sentence in refused.value.detail
    assert refused.value.retryable is Retryable.AFTER_ACTION
    assert str(tmp_path) not in refused.value.detail


@pytest.mark.req("LLM-9")
def test_a_file_that_may_not_be_read_says_who_has_to_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, sought: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(model_files, "read_header", refuse)  # root may read everything

    with pytest.raises(ModelFileUnusable, match="let the hub's user read it"):
        inspect_file("mine", write_encoder(tmp_path / "mine.gguf"))


@pytest.mark.req("LLM-9")
def test_a_model_in_parts_is_named_by_its_first_and_has_all_of_them(tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{part}-of-00002.gguf" for part in (1, 2))
    write_decoder(first, **{"split.count": 2})

    with pytest.raises(ModelFileUnusable, match=r"big-00002-of-00002\.gguf is not beside it: put it there"):
        inspect_file("big", first)
    write_decoder(second, **{"split.count": 2})
    with pytest.raises(ModelFileUnusable, match="name the first, big-00001-of-00002"):
        inspect_file("big", second)

    assert inspect_file("big", first).operations == ("chat",)


@pytest.mark.req("LLM-9")
def test_wherever_a_file_is_cut_its_header_is_refused_or_whole(tmp_path: Path) -> None:
    data = write_encoder(tmp_path / "whole.gguf").read_bytes()
    whole = read_header(tmp_path / "whole.gguf")
    cut = tmp_path / "cut.gguf"
    refused = 0

    for length in range(0, len(data), 997):
        cut.write_bytes(data[:length])
        try:
            assert read_header(cut) == whole
        except HeaderRefused:
            refused += 1

    assert refused > 85
