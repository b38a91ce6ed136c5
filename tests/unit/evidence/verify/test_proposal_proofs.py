"""Proposal proofs: does an auditor see, with the evidence alone, which answer proposed a call, and is a link that does not hold
named?
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.verify import bundle
from evidence.verify.bundle_verifier import verify_bundle
from evidence.verify.command import main
from evidence.verify.facts import leaf_columns
from evidence.verify.mirror import verify_mirror
from tests.unit.evidence.verify.bundles import SALT, Log, files_of, leaf, mirror, write
from tests.unit.evidence.verify.trees import SIGNER

if TYPE_CHECKING:
    from pathlib import Path

    from evidence.verify.report import VerificationReport

KEY = str(SIGNER.key)
HASH, OTHER = "hmac-sha256:" + "0" * 64, "hmac-sha256:" + "1" * 64
LINK = {"invocation": "inv_model", "model": "model.script.main", "proposal": HASH}
PROPOSAL = {"call_id": "c1", "name": "bank.pay", "arguments": {"a": 1}}


def commit(name: str, value: Any) -> dict[str, Any]:
    text = json.dumps(value).encode()
    digest = "sha256:" + hashlib.sha256(SALT + text).hexdigest()
    return {"alg": "sha256-jcs", "bytes": len(text), "commit": digest, "snapshot": f"snp_{name}"}


def answered(value: Any = None, **model: Any) -> list[bytes]:
    more = {"output": commit("out", value)} if value is not None else {}
    ended = {"model": {"provider": "script", "proposals": 1, "proposed": [OTHER, HASH]} | model, **more}
    return [
        leaf(0, "invocation.began", "inv_model"),
        leaf(1, "invocation.ended", "inv_model", outcome="succeeded", tool="model.script.main", data=ended),
    ]


def called(value: Any = None, number: int = 2, **link: Any) -> list[bytes]:
    more = {"input": commit("in", value)} if value is not None else {}
    began = {"proposed_by": LINK | link, **more}
    return [
        leaf(number, "invocation.began", "inv_tool", tool="bank.pay", data=began),
        leaf(number + 1, "invocation.ended", "inv_tool", outcome="succeeded", tool="bank.pay"),
    ]


def verify(folder: Path, leaves: list[bytes], **manifest: Any) -> VerificationReport:
    log, start = Log(leaves), manifest.get("start", 0)
    path = write(folder / "b.zip", log, files_of(log, start=start, opened=False), open_calls=[], **manifest)
    return verify_bundle(path, keys=[KEY])


def verify_opened(folder: Path, leaves: list[bytes], **values: Any) -> VerificationReport:
    log = Log(leaves)
    files = files_of(log, opened=False)
    lines = []
    for index, raw in enumerate(leaves):
        data = json.loads(raw).get("data", {})
        opened = [
            bundle.opened_value(
                snapshot=f"snp_{name}", salt=base64.b64encode(SALT).decode(), value=json.dumps(value).encode()
            )
            for name, value in values.items()
            if f"snp_{name}" in json.dumps(data)
        ]
        lines.append(
            bundle.fact_line(
                index=index,
                leaf=raw,
                path=log.proof(index),
                checkpoint=log.checkpoint(),
                columns=leaf_columns(json.loads(raw)),
                values=opened,
            )
        )
    files[bundle.facts_name(0)] = b"".join(lines)
    return verify_bundle(write(folder / "b.zip", log, files, open_calls=[]), keys=[KEY])


def sentences(report: VerificationReport) -> list[str]:
    return [str(found) for found in report.findings]


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_call_is_shown_with_the_answer_that_proposed_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = verify(tmp_path, answered() + called())

    assert sentences(report) == []
    assert (report.proposals, report.unseen_answers) == (1, 0)
    assert main([str(tmp_path / "b.zip"), "--key", KEY]) == 0
    assert "proposed   inv_tool by the answer of inv_model, of model.script.main\n" in capsys.readouterr().out


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_facts_in_another_order_are_shown_all_the_same(tmp_path: Path) -> None:
    assert verify(tmp_path, called(number=0) + answered()).proposals == 1


@pytest.mark.req("LLM-3", "TOOLS-18")
@pytest.mark.parametrize("proposed", [[OTHER], []])
def test_an_answer_that_proposed_something_else_is_a_finding(tmp_path: Path, proposed: list[str]) -> None:
    report = verify(tmp_path, answered(proposed=proposed) + called())

    assert sentences(report) == [
        "Leaf 2: inv_tool was not proposed by inv_model, as its Begin says: its End has no such proposal."
    ]
    assert (report.proposals, report.ok) == (0, False)


@pytest.mark.req("LLM-3", "TOOLS-18")
@pytest.mark.parametrize(
    ("stood_in", "is_right"), [("model.other.small", True), ("model.third.one", False), (None, False)]
)
def test_the_model_that_a_call_names_is_the_one_that_gave_the_answer(
    tmp_path: Path, stood_in: str | None, is_right: bool
) -> None:
    ended = answered(**({"stood_in": stood_in} if stood_in else {}))

    report = verify(tmp_path, ended + called(model="model.other.small"))

    found = f"names model.other.small as the model that proposed it, and inv_model is an answer of {stood_in or 'model.script.main'}."
    assert sentences(report) == ([] if is_right else [f"Leaf 2: inv_tool {found}"])
    assert [each.model for each in report.proven_proposals] == (["model.other.small"] if is_right else [])


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_an_answer_that_is_not_in_a_whole_log_is_a_finding(tmp_path: Path) -> None:
    report = verify(tmp_path, called(number=0))

    assert sentences(report) == [
        "Leaf 0: inv_tool names inv_model as the answer that proposed it, and the log has no such answer."
    ]


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_an_answer_outside_of_the_range_is_said_not_to_be_here_and_nothing_is_wrong(tmp_path: Path) -> None:
    report = verify(tmp_path, answered() + called(), start=2)

    assert sentences(report) == []
    assert (report.proposals, report.unseen_answers) == (0, 1)
    assert any("1 by answers that are not in this evidence" in line for line in report.lines())


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_link_that_says_nothing_makes_its_leaf_a_bad_one(tmp_path: Path) -> None:
    assert sentences(verify(tmp_path, answered() + called(proposal=None))) == [
        "Leaf 2: It does not say which answer proposed the call."
    ]


@pytest.mark.req("LLM-3", "TOOLS-18")
@pytest.mark.parametrize(
    ("arguments", "call_id", "is_right"),
    [({"a": 1}, "c1", True), ({"a": 1.0}, "c1", True), ({"a": 2}, "c1", False), ({"a": 1}, "c2", False)],
)
def test_opened_values_are_compared_themselves(tmp_path: Path, arguments: Any, call_id: str, is_right: bool) -> None:
    output = {"data": {"proposals": [PROPOSAL]}}
    given = {"arguments": arguments, "envelope": {"proposed_by": {"invocation": "inv_model", "call_id": call_id}}}
    report = verify_opened(tmp_path, answered(output) + called(given), **{"in": given, "out": output})

    if is_right:
        assert sentences(report) == []
        assert report.proven_proposals[0].values_compared
    else:
        assert sentences(report) == [
            "Leaf 2: What inv_tool was called with is not what inv_model proposed, though its Begin says so."
        ]


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_value_that_was_opened_of_one_side_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    output = {"data": {"proposals": [PROPOSAL]}}
    report = verify_opened(tmp_path, answered(output) + called(), out=output)

    assert sentences(report) == []
    assert not report.proven_proposals[0].values_compared


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_copied_log_shows_the_same(tmp_path: Path) -> None:
    good = verify_mirror(mirror(tmp_path / "good", Log(answered() + called())))
    broken = verify_mirror(mirror(tmp_path / "broken", Log(answered(proposed=[OTHER]) + called())))

    assert (sentences(good), good.proposals) == ([], 1)
    assert (broken.first_bad, broken.proposals) == (2, 0)
    assert "was not proposed by inv_model" in sentences(broken)[0]
