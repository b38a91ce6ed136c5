"""Npm locks: is a package-lock.json read to what would be installed, and is nothing taken that a hub cannot fetch and hold?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.npm_packages import integrity_of
from unitools.changes.dependency_changes import compare_dependency_lock
from unitools.dependency_locks import compute_lock_digest, normalize_lock_lines, read_lock_lines
from unitools.npm_locks import MAX_PACKAGES, NpmLockUnfit, read_npm_dependency, read_npm_line, read_package_lock

SHA512 = integrity_of(b"x")


def lock_of(packages: dict[str, Any], version: int = 3) -> str:
    return json.dumps({"lockfileVersion": version, "packages": {"": {}} | packages})


def entry(**more: Any) -> dict[str, Any]:
    return {"version": "1.0.0", "integrity": SHA512} | more


@pytest.mark.req("BRING-2")
def test_a_lock_holds_what_is_installed_here_and_not_what_is_for_development_or_elsewhere() -> None:
    text = lock_of(
        {
            "node_modules/a": entry(resolved="https://registry.example/a/-/a-1.0.0.tgz"),
            "node_modules/a/node_modules/@b/c": entry(version="2.0.0-rc.1"),
            "node_modules/alias": entry(name="real"),
            "node_modules/dev": entry(dev=True),
            "node_modules/a/node_modules/inner": {"version": "1.0.0", "inBundle": True},
            "node_modules/on-linux": entry(optional=True, os=["linux"], cpu=["x64"], libc=["glibc"]),
            "node_modules/on-musl": entry(optional=True, os=["linux"], cpu=["x64"], libc=["musl"]),
            "node_modules/on-mac": entry(optional=True, os=["darwin"]),
            "node_modules/built": entry(optional=True, hasInstallScript=True),
        }
    )

    lines = read_package_lock(text)

    assert lines == [
        f"npm:node_modules/a a@1.0.0 {SHA512}",
        f"npm:node_modules/a/node_modules/@b/c @b/c@2.0.0-rc.1 {SHA512}",
        f"npm:node_modules/alias real@1.0.0 {SHA512}",
        f"npm:node_modules/on-linux on-linux@1.0.0 {SHA512} os=linux cpu=x64 libc=glibc optional",
    ]
    assert (normalize_lock_lines(reversed(lines)), read_lock_lines(text)) == (lines, lines)
    assert compute_lock_digest(lines).startswith("sha256:")


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("packages", "says"),
    [
        ({"node_modules/a": entry(hasInstallScript=True)}, "a 1.0.0 has an install script"),
        ({"node_modules/a": entry(resolved="git+ssh://git@example.org/a.git#1")}, "a comes from an address"),
        ({"node_modules/a": entry(resolved="https://example.org/other-1.0.0.tgz")}, "a comes from an address"),
        ({"node_modules/a": entry(resolved="file:a.tgz")}, "a comes from an address"),
        ({"node_modules/a": {"resolved": "a", "link": True}}, "a link to one"),
        ({"a": entry()}, "a folder of the author's"),
        ({"node_modules/a": {"version": "1.0.0"}}, "has no sha512"),
        ({"node_modules/a": entry(integrity="sha1-AAAA")}, "has no sha512"),
        ({"node_modules/../a": entry()}, "is not a place below node_modules"),
        ({"node_modules/a/../../b": entry(name="b")}, "is not a place below node_modules"),
        ({"node_modules/node_modules": entry()}, "names what is no package"),
        ({"node_modules/a": entry(version="^1.0.0")}, "is not a place below node_modules"),
        ({"node_modules/a": []}, "is no entry"),
    ],
)
def test_what_cannot_be_fetched_from_a_registry_and_held_is_refused_by_name(
    packages: dict[str, Any], says: str
) -> None:
    with pytest.raises(NpmLockUnfit, match=says):
        read_package_lock(lock_of(packages))


@pytest.mark.req("BRING-2")
def test_a_lock_of_more_packages_than_a_manifest_takes_is_refused_when_it_is_read() -> None:
    packages = {f"node_modules/a{number}": entry() for number in range(MAX_PACKAGES)}
    assert len(read_package_lock(lock_of(packages))) == MAX_PACKAGES

    with pytest.raises(NpmLockUnfit, match="holds 601 packages"):
        read_package_lock(lock_of(packages | {"node_modules/b": entry()}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "no package-lock"),
        ("[", "no package-lock"),
        ('{"lockfileVersion": 3, "packages": []}', "no package-lock"),
        ('{"lockfileVersion": 3, "packages": [["node_modules/a", {}]]}', "no package-lock"),
        (lock_of({}, 2), "version 2"),
    ],
)
def test_another_file_is_no_lock(text: str, says: str) -> None:
    with pytest.raises(NpmLockUnfit, match=says):
        read_package_lock(text)


@pytest.mark.parametrize(
    "line", ["npm:", f"npm:node_modules/a a@1 {SHA512}", f"npm:node_modules/a a@1.0.0 {SHA512} os=", "a==1"]
)
def test_a_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not a place"):
        read_npm_line(line)


def test_a_dependency_names_one_version() -> None:
    assert read_npm_dependency("npm:@a/b@1.2.3") == ("@a/b", "1.2.3")
    assert [read_npm_dependency(each) for each in ("npm:a", "npm:a@^1", "npm:@a@1.0.0", "a@1.0.0")] == [None] * 4


@pytest.mark.req("BRING-2")
def test_a_package_at_two_places_is_compared_by_its_place() -> None:
    old = [f"npm:node_modules/a a@1.0.0 {SHA512}", f"npm:node_modules/b/node_modules/a a@2.0.0 {SHA512}"]
    new = [old[0], f"npm:node_modules/b/node_modules/a a@2.1.0 {SHA512}"]

    assert [each.kind for each in compare_dependency_lock(old, new)] == ["lock.changed"]


@pytest.mark.req("BRING-2")
def test_a_package_in_the_place_of_another_is_told_by_its_own_name() -> None:
    here = read_npm_line(f"npm:node_modules/@a/b/node_modules/lodash other@1.0.0 {SHA512}")
    plain = read_npm_line(f"npm:node_modules/@a/b/node_modules/@c/d @c/d@1.0.0 {SHA512}")

    assert (here.name, here.alias) == ("other", "lodash")
    assert (plain.name, plain.alias) == ("@c/d", "")
