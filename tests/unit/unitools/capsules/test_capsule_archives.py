"""Capsule archives: is the same tool always the same capsule, and does a signature say whose it is?"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.capsules import ANOTHER, PRIVATE, SOURCE, capsule, pem_of, public_pem_of, shouting
from unitools.capsules import Capsule, compute_capsule_digest, errors, open_capsule, pack_capsule, signatures
from unitools.command import main

OURS, THEIRS = signatures.read_public_key(public_pem_of()), signatures.read_public_key(public_pem_of(ANOTHER))


@pytest.mark.req("TOOLS-32")
def test_the_same_input_gives_the_same_bytes_and_the_digest_is_that_of_the_file() -> None:
    made, again = capsule(readme="# Voice\n"), capsule(readme="# Voice\n")

    assert made == again
    assert (
        made.digest
        == compute_capsule_digest(made.data)
        == "sha256:ded553e7e428f5b51d76ab84abd8bd5744ba5a0da08cff8bf283919dbc163524"
    )


@pytest.mark.req("TOOLS-32")
def test_what_was_packed_is_read_again() -> None:
    made = capsule(shouting(), shouting(name="whisper"), readme="# Voice\n")

    assert open_capsule(made.data) == made
    assert made.tools == [
        {"id": "acme.voice.shout", "version": "1.0.0"},
        {"id": "acme.voice.whisper", "version": "1.0.0"},
    ]
    assert made.files == {"acme_voice/__init__.py": b"", "acme_voice/main.py": SOURCE.encode()}
    assert (made.package, made.readme) == ("acme_voice", "# Voice\n")


@pytest.mark.req("TOOLS-32")
def test_a_folder_is_packed_like_its_files_without_what_is_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "acme_voice"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"compiled")
    (folder / "__init__.py").write_text("")
    (folder / "main.py").write_text(SOURCE)

    assert pack_capsule([shouting()], folder) == capsule()


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@pytest.mark.req("TOOLS-32")
@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=6))
def test_whatever_the_files_are_called_they_are_packed_to_the_same_bytes_or_refused(files: dict[str, bytes]) -> None:
    source = {"acme_voice/main.py": b""} | {f"acme_voice/{name}": content for name, content in files.items()}
    try:
        made = pack_capsule([shouting()], source)
    except errors.CapsuleError:
        return
    assert open_capsule(made.data).files == source
    assert pack_capsule([shouting()], dict(reversed(source.items()))).data == made.data


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("manifests", "files"),
    [
        ([shouting(), shouting()], {"acme_voice/main.py": b""}),
        ([shouting()], {"acme_voice/main.py": b"", "other/main.py": b""}),
        ([shouting()], {}),
        ([], {"acme_voice/main.py": b""}),
        ([shouting()], {"json/main.py": b""}),
        ([shouting(id="../../evil")], {"acme_voice/main.py": b""}),
        ([shouting(input_schema={"a": float("nan")})], {"acme_voice/main.py": b""}),
    ],
)
def test_what_is_no_capsule_is_not_packed(manifests: list[dict[str, Any]], files: dict[str, bytes]) -> None:
    with pytest.raises(errors.CapsuleError):
        pack_capsule(manifests, files)


# Signatures.


@pytest.mark.req("TOOLS-32")
def test_a_signature_says_which_of_the_trusted_keys_made_it() -> None:
    made = capsule()
    envelope = signatures.sign(made, pem_of())

    assert signatures.verify(made, envelope, [THEIRS, OURS]) == OURS
    assert signatures.read_signers(envelope) == [OURS.id]
    assert signatures.sign(made, pem_of()) == envelope


@pytest.mark.req("TOOLS-32")
def test_what_is_signed_is_an_in_toto_statement_of_the_capsules_digest() -> None:
    made = capsule()
    said = json.loads(base64.b64decode(json.loads(signatures.sign(made, pem_of()))["payload"]))

    assert said == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "acme_voice.capsule", "digest": {"sha256": made.digest.removeprefix("sha256:")}}],
        "predicateType": "urn:unitools:capsule:v1",
        "predicate": {"package": "acme_voice", "tools": [{"id": "acme.voice.shout", "version": "1.0.0"}]},
    }


@pytest.mark.req("TOOLS-32")
def test_our_own_reader_of_envelopes_agrees_with_the_library() -> None:
    """The signature is over DSSE's encoding, made here by hand."""
    envelope = json.loads(signatures.sign(capsule(), pem_of()))
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()

    PRIVATE.public_key().verify(
        base64.b64decode(envelope["signatures"][0]["sig"]),
        b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload),
    )


@pytest.mark.req("TOOLS-32")
def test_a_key_that_nobody_trusts_and_another_capsule_are_refused() -> None:
    made, other = capsule(), capsule(shouting("1.0.1"))
    envelope = signatures.sign(made, pem_of())

    with pytest.raises(errors.UnknownSigner, match=OURS.id):
        signatures.verify(made, envelope, [THEIRS])
    with pytest.raises(errors.UnknownSigner):
        signatures.verify(made, envelope, [])
    with pytest.raises(errors.AnotherCapsule):
        signatures.verify(other, envelope, [OURS])


def forged(made: Capsule, **changes: Any) -> bytes:
    return json.dumps(json.loads(signatures.sign(made, pem_of())) | changes).encode()


@pytest.mark.req("TOOLS-32")
def test_a_signature_under_the_name_of_another_key_is_wrong() -> None:
    made = capsule()
    theirs = json.loads(signatures.sign(made, pem_of(ANOTHER)))["signatures"][0]

    with pytest.raises(errors.WrongSignature):
        signatures.verify(made, forged(made, signatures=[theirs | {"keyid": OURS.id}]), [OURS])


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    "changes",
    [
        {"payloadType": "text/plain"},
        {"payload": "e30="},
        {"payload": "not base64"},
        {"payload": 7},
        {"signatures": {}},
        {"signatures": [{"keyid": "a"}]},
        {"signatures": [{"keyid": "a", "sig": "AA==", "more": 1}]},
        {"signatures": [{"keyid": "a", "sig": "AA=="}] * 2},
        {"signatures": [{"keyid": str(number), "sig": "AA=="} for number in range(17)]},
        {"more": 1},
    ],
)
def test_what_is_no_envelope(changes: dict[str, Any]) -> None:
    made = capsule()

    with pytest.raises(errors.NotAnEnvelope):
        signatures.verify(made, forged(made, **changes), [OURS])


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 50_000, b"x" * 70_000, b'{"a": 1, "a": 2}', b"\xff"])
def test_bytes_that_are_no_envelope(data: bytes) -> None:
    with pytest.raises(errors.NotAnEnvelope):
        signatures.verify(capsule(), data, [OURS])


@pytest.mark.req("TOOLS-32")
def test_a_signature_of_nobody_and_an_empty_one() -> None:
    made = capsule()

    with pytest.raises(errors.UnknownSigner):
        signatures.verify(made, forged(made, signatures=[]), [OURS])
    with pytest.raises(errors.WrongSignature):
        signatures.verify(made, forged(made, signatures=[{"keyid": OURS.id, "sig": ""}]), [OURS])


P256 = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
-----END PUBLIC KEY-----
"""


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("pem", ["", "nothing", P256, pem_of().decode(), "x" * 10_000, "-----BEGIN PUBLIC KEY-----"])
def test_what_is_no_publishers_key(pem: str) -> None:
    with pytest.raises(errors.NotAKey):
        signatures.read_public_key(pem)


# The command line.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as an author has it, the working directory around it, and a key pair."""
    package = tmp_path / "acme_voice"
    (package / "manifests").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "main.py").write_text(SOURCE)
    (package / "README.md").write_text("# Voice\n")
    (package / "manifests" / "shout.json").write_text(json.dumps(shouting()))
    (tmp_path / "private.pem").write_bytes(pem_of())
    (tmp_path / "public.pem").write_text(public_pem_of())
    (tmp_path / "another.pem").write_text(public_pem_of(ANOTHER))
    monkeypatch.chdir(tmp_path)
    return package


@pytest.mark.req("TOOLS-32")
def test_pack_and_verify_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", str(folder), "--key", "private.pem"]) == 0
    made = open_capsule(Path("acme_voice.capsule").read_bytes())
    assert made.digest in capsys.readouterr().out
    assert made.readme == "# Voice\n"

    assert main(["verify", "acme_voice.capsule", "--key", "another.pem", "--key", "public.pem"]) == 0
    assert f"Signed by public.pem ({OURS.id})." in capsys.readouterr().out
    assert main(["verify", "acme_voice.capsule", "--key", "another.pem"]) == 2
    assert "No (UnknownSigner)" in capsys.readouterr().out
    assert main(["verify", "acme_voice.capsule", "--unsigned"]) == 0


@pytest.mark.req("TOOLS-32")
def test_a_changed_capsule_is_not_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["pack", str(folder), "--key", "private.pem"])
    (folder / "main.py").write_text("evil = True\ndef run(): ...\n")
    main(["pack", str(folder), "-o", "other.capsule"])
    Path("other.capsule.dsse.json").write_bytes(Path("acme_voice.capsule.dsse.json").read_bytes())

    assert main(["verify", "other.capsule", "--key", "public.pem"]) == 2
    Path("acme_voice.capsule").write_bytes(Path("acme_voice.capsule").read_bytes() + b"x")
    assert main(["verify", "acme_voice.capsule", "--key", "public.pem"]) == 2
    out = capsys.readouterr().out
    assert "No (AnotherCapsule)" in out
    assert "No (TrailingData)" in out


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    "arguments",
    [
        ["pack", "nowhere"],
        ["pack", "acme_voice", "--key", "public.pem"],
        ["pack", "acme_voice", "--key", "nowhere.pem"],
        ["pack", "acme_voice", "--lock", "nowhere.txt"],
        ["pack", "acme_voice", "--manifest", "private.pem"],
        ["pack", "acme_voice", "-o", "no/such/folder.capsule"],
        ["verify", "nowhere.capsule", "--unsigned"],
        ["verify", "public.pem"],
        ["verify", "public.pem", "--unsigned", "--key", "public.pem"],
    ],
)
def test_a_command_that_cannot_run_says_so(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert capsys.readouterr().err


@pytest.mark.req("TOOLS-32")
def test_reading_a_capsule_needs_no_package_but_the_standard_library() -> None:
    heavy = "{'cryptography', 'securesystemslib', 'pydantic', 'django'}"
    code = f"import sys, unitools.capsules; assert not {heavy} & set(sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[4], check=False).returncode == 0
