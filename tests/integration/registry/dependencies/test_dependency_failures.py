"""Dependency failures: does each way in which dependencies cannot be built say what is the case and what to do?"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from registry.dependencies import build_steps, pip
from registry.dependencies.failures import CannotBuild
from registry.dependencies.pip import ProgressHooks
from tests.support.dependencies import SILENT, ZEROS, build, failure_of, nothing
from tests.support.http_server import local_server
from tests.support.wheels import line, make_wheel

if TYPE_CHECKING:
    from pathlib import Path


def test_a_source_package_is_never_built(wheels: Path) -> None:
    (wheels / "only-1.0.tar.gz").write_bytes(b"not looked at")

    code, message, _ = failure_of(lambda: build([line("only", ZEROS)]))

    assert (code, "nothing is built from source" in message) == ("no_wheel", True)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What a source package beside it leaves behind where its code is run."""
    ran = tmp_path / "ran"
    with tarfile.open(tmp_path / "evil-1.0.tar.gz", "w:gz") as archive:
        for name, text in {
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n',
            "evil.py": f"import pathlib\npathlib.Path({str(ran)!r}).write_text('1')\n",
        }.items():
            member = tarfile.TarInfo(f"evil-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return ran


def test_what_is_named_by_an_address_is_neither_fetched_nor_built(wheels: Path, tmp_path: Path, ran: Path) -> None:
    make_wheel(wheels, "first", requires=[f"evil @ file://{tmp_path}/evil-1.0.tar.gz"])

    code, _, remedy = failure_of(lambda: build_steps.resolve_requirements(["first==1.0"], talk=SILENT))

    assert code == "address"
    assert "index" in remedy
    assert not ran.exists()


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("constraint", ["zzz===\n--requirement={}", "zzz<1\n-r {}", "zzz<1\r--find-links={}", "{}"])
def test_a_constraint_that_holds_a_line_of_options_runs_nothing(
    wheels: Path, tmp_path: Path, ran: Path, constraint: str
) -> None:
    make_wheel(wheels, "first")
    (tmp_path / "more.txt").write_text(f"{tmp_path}/evil-1.0.tar.gz\n")
    constraints = [constraint.format(tmp_path / "more.txt")]

    code, _, _ = failure_of(
        lambda: build_steps.resolve_requirements(["first==1.0"], talk=SILENT, constraints=constraints)
    )

    assert (code, ran.exists()) == ("constraint", False)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--requirement={}/more.txt", "no option"),
        ("-c {}/more.txt", "no option"),
        ("-e {}/evil", "no option"),
        ("--find-links={}", "no option"),
        ("--extra-index-url=http://127.0.0.1:1/", "no option"),
        ("{}/evil-1.0.tar.gz", "named by an address"),
        ("file://{}/evil-1.0.tar.gz", "named by an address"),
    ],
)
def test_our_pip_takes_neither_options_nor_files_from_a_list(
    wheels: Path, tmp_path: Path, ran: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    make_wheel(wheels, "first")
    (tmp_path / "more.txt").write_text(f"{tmp_path}/evil-1.0.tar.gz\n")
    monkeypatch.setattr(pip, "format_constraint", lambda _: text.format(tmp_path))

    _, message, _ = failure_of(
        lambda: build_steps.resolve_requirements(["first==1.0"], talk=SILENT, constraints=["first<2"])
    )

    assert why in message
    assert not ran.exists()


@pytest.mark.parametrize(
    "item",
    [
        {"is_direct": True, "download_info": {"url": "https://packages.example/first-1.0-py3-none-any.whl"}},
        {"download_info": {"url": "https://packages.example/first-1.0.tar.gz"}},
    ],
)
def test_what_is_no_wheel_of_the_index_comes_into_no_lock(item: dict[str, Any]) -> None:
    item |= {"metadata": {"name": "first", "version": "1.0"}}

    with pytest.raises(CannotBuild) as refused:
        pip._locked(item)

    assert refused.value.failure.code == "address"


def test_a_wheel_for_another_system_is_not_taken(wheels: Path) -> None:
    made = make_wheel(wheels, "only", tag="cp311-cp311-win_amd64")

    assert failure_of(lambda: build([line("only", made)]))[0] == "no_wheel"
    assert failure_of(lambda: build_steps.resolve_requirements(["only==1.0"], talk=SILENT))[0] == "no_wheel"


@pytest.mark.req("SVC-9")
def test_a_file_that_is_not_the_one_of_the_lock_is_refused(wheels: Path) -> None:
    make_wheel(wheels, "first")

    code, message, remedy = failure_of(lambda: build([line("first", ZEROS)]))

    assert code == "hash_mismatch"
    assert "first" in message
    assert "lock" in remedy


def test_a_package_and_a_version_that_are_not_there_are_told_apart(wheels: Path) -> None:
    make_wheel(wheels, "first", "1.0")
    make_wheel(wheels, "first", "1.1")

    absent = failure_of(lambda: build_steps.resolve_requirements(["missing==1.0"], talk=SILENT))
    other = failure_of(lambda: build_steps.resolve_requirements(["first==2.0"], talk=SILENT))

    assert absent[0] == "unknown_package"
    assert "missing" in absent[1]
    assert "TOOLHUB_PACKAGE_INDEX" in absent[2]
    assert other[0] == "unknown_version"
    assert "1.0, 1.1" in other[1]


def test_versions_that_do_not_fit_each_other_are_named(wheels: Path) -> None:
    make_wheel(wheels, "first", requires=["second>=2"])
    make_wheel(wheels, "second", "1.0")
    make_wheel(wheels, "second", "2.0")

    code, message, _ = failure_of(lambda: build_steps.resolve_requirements(["first==1.0", "second==1.0"], talk=SILENT))

    assert code == "conflict"
    assert "first 1.0 depends on second>=2" in message


def test_a_hash_beside_a_dependency_binds_what_is_found(wheels: Path) -> None:
    made = make_wheel(wheels, "first")

    assert build_steps.resolve_requirements([line("first", made)], talk=SILENT) == [line("first", made)]
    assert (
        failure_of(lambda: build_steps.resolve_requirements([line("first", ZEROS)], talk=SILENT))[0] == "hash_mismatch"
    )


def test_a_lock_that_leaves_out_what_a_package_needs_is_refused_before_a_call_finds_out(wheels: Path) -> None:
    made = make_wheel(
        wheels, "first", requires=["second", 'older; python_version < "3.11"', 'extra-one; extra == "more"']
    )

    code, message, remedy = failure_of(lambda: build([line("first", made)]))
    named = failure_of(lambda: build([line("first", made)], "third==1.0"))

    assert (code, message) == ("incomplete", "The lock leaves out what first needs: second.")
    assert "dependencies" in remedy
    assert "the manifest needs: third" in named[1]


def test_a_lock_that_holds_another_version_than_is_needed_is_incomplete(wheels: Path) -> None:
    first = make_wheel(wheels, "first", requires=["second>=2"])
    second = make_wheel(wheels, "second", "1.0")

    code, message, _ = failure_of(lambda: build([line("first", first), line("second", second)]))

    assert (code, message) == ("incomplete", "The lock leaves out what first needs: second>=2.")


def test_a_package_does_not_take_the_place_of_what_the_box_imports(wheels: Path) -> None:
    made = make_wheel(wheels, "first", files={"unitools/__init__.py": ""})

    assert failure_of(lambda: build([line("first", made)]))[0] == "reserved_name"


def test_what_is_too_large_is_refused(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_wheel(wheels, "first", files={"data.txt": "x" * 100_000})
    monkeypatch.setattr(build_steps, "MAX_BYTES", 50_000)

    assert failure_of(lambda: build([line("first", made)]))[0] == "too_large"


def test_what_is_too_large_is_stopped_while_it_grows(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_steps, "MAX_BYTES", 1000)
    monkeypatch.setattr(build_steps, "SIZE_EVERY_S", 0.0)
    (wheels / "grown").write_bytes(b"x" * 2000)

    (wheels / "empty").mkdir()
    watched = build_steps._Watched(SILENT, wheels / "empty", wheels)

    with pytest.raises(CannotBuild, match="more than"):
        watched.beat()


def test_what_pip_unpacks_is_watched_where_it_unpacks_it(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Path] = []
    unpacks_in: list[str] = []
    watch, environment = build_steps._Watched.__init__, pip.pip_environment

    def watch_and_tell(self: build_steps._Watched, talk: ProgressHooks, *folders: Path) -> None:
        watched.extend(folders)
        watch(self, talk, *folders)

    def environment_and_tell(work: Path) -> dict[str, str]:
        unpacks_in.append(environment(work)["TMPDIR"])
        return environment(work)

    monkeypatch.setattr(build_steps._Watched, "__init__", watch_and_tell)
    monkeypatch.setattr(pip, "pip_environment", environment_and_tell)

    build([line("first", make_wheel(wheels, "first"))])

    assert unpacks_in[0] in map(str, watched)


def test_a_disk_without_room_is_said_to_be_full_before_anything_is_fetched(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_steps, "LEAST_FREE", 2**63)

    code, _, remedy = failure_of(lambda: build([line("first", ZEROS)]))

    assert code == "disk_full"
    assert "TOOLHUB_DEPENDENCY_DIR" in remedy


def test_pip_that_runs_out_of_disk_is_understood(wheels: Path) -> None:
    said = ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"]

    assert pip._why(said, work=wheels, talk=SILENT).code == "disk_full"


def test_a_folder_that_cannot_be_written_is_named(wheels: Path, settings: Any) -> None:
    (wheels / "file").write_text("")
    settings.TOOLHUB_DEPENDENCY_DIR = str(wheels / "file" / "deps")

    with pytest.raises(CannotBuild) as refused:
        build([line("first", ZEROS)])

    assert refused.value.failure.code == "store_unusable"
    assert "TOOLHUB_DEPENDENCY_DIR" in refused.value.failure.remedy


def test_a_wheelhouse_that_is_not_there_is_named(wheels: Path, settings: Any) -> None:
    settings.TOOLHUB_WHEELHOUSE = str(wheels / "none")

    code, message, _ = failure_of(lambda: build_steps.resolve_requirements(["first==1.0"], talk=SILENT))

    assert code == "wheelhouse_missing"
    assert "TOOLHUB_WHEELHOUSE" in message


def test_an_index_that_does_not_answer_says_what_to_set(wheels: Path, settings: Any) -> None:
    settings.TOOLHUB_WHEELHOUSE = ""
    settings.TOOLHUB_PACKAGE_INDEX = "http://user:secret@127.0.0.1:1/simple"
    told: list[str] = []

    code, message, remedy = failure_of(
        lambda: build_steps.resolve_requirements(["first==1.0"], talk=ProgressHooks(told.append, nothing))
    )

    assert code == "index_unreachable"
    assert "TOOLHUB_PACKAGE_INDEX" in remedy
    assert "TOOLHUB_WHEELHOUSE" in remedy
    assert "The index does not answer; trying again" in told
    assert "secret" not in "".join([message, remedy, *told])


@pytest.mark.parametrize(
    ("status", "code"), [(403, "index_refused"), (404, "unknown_package"), (500, "index_unreachable")]
)
def test_what_an_index_answers_is_told_apart(wheels: Path, settings: Any, status: int, code: str) -> None:
    settings.TOOLHUB_WHEELHOUSE = ""
    with local_server() as index:
        index.status, index.document = status, b""
        settings.TOOLHUB_PACKAGE_INDEX = f"{index.url}/simple"

        assert failure_of(lambda: build_steps.resolve_requirements(["first==1.0"], talk=SILENT))[0] == code
        assert {each.path for each in index.heard} == {"/simple/first/"}  # that index, and no other


def test_pip_gets_nothing_of_the_hub_but_how_to_reach_an_index(
    wheels: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOOLHUB_SECRET_KEY", "PGPASSWORD", "PIP_TARGET", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "x")
    chosen = pip.pip_environment(wheels)
    settings.TOOLHUB_WHEELHOUSE = ""
    own = pip.pip_environment(wheels)

    assert {"PIP_CERT", "HTTPS_PROXY"} <= chosen.keys()
    assert not {"TOOLHUB_SECRET_KEY", "PGPASSWORD", "PIP_TARGET"} & (chosen.keys() | own.keys())
    assert "PIP_EXTRA_INDEX_URL" not in chosen  # whoever names an index means that one
    assert "PIP_EXTRA_INDEX_URL" in own
