"""Leaves of tools: versions and reviews, dependencies, installations and secrets, capsules and who signs them."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, Written, leaf_data, leaf_part


@leaf_data(Kind.TOOL_REGISTERED)
class RegisteredVersion(LeafData):
    """That a version was submitted."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    base: Annotated[str, "version that it was compared with; empty: the first"]
    changes: Annotated[int, "how many things are other than there"]
    signed_by: Annotated[str, "id of the publisher's key; empty: nobody"]
    manifest_digest: Annotated[str, "of the manifest"]
    build_digest: Annotated[str, "of the code"]


@leaf_data(Kind.TOOL_REVIEWED)
class ReviewedVersion(LeafData):
    """What a person decided about a version."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    decision: Annotated[str, "`approve` or `refuse`"]
    note: Written
    acknowledged: Annotated[list[str], "findings that the person has seen"]
    lock: Annotated[str, "digest of the locked dependencies; empty: there are none"]
    state: Annotated[str, "of the version, after it"]


@leaf_part
class MovedTool(LeafData):
    """From which state to which a tool went."""

    from_: Annotated[str, "state before"]
    to: Annotated[str, "state after"]
    reason: Written


@leaf_data(Kind.TOOL_ENABLED)
class EnabledTool(MovedTool):
    """That a tool can be called, and with which version."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]


@leaf_data(Kind.TOOL_PAUSED)
class PausedTool(MovedTool):
    """That no call of a tool is accepted."""


@leaf_data(Kind.TOOL_DEPRECATED)
class DeprecatedTool(MovedTool):
    """That a tool ends on a day."""

    sunset_on: Annotated[str, "last day"]
    successor: Annotated[str, "tool to use instead; empty: none"]


@leaf_data(Kind.VERSION_STAGED)
class StagedVersion(LeafData):
    """That some tenants get a version before the others."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    tenants: Annotated[list[str], "short names"]
    reason: Written


@leaf_data(Kind.VERSION_YANKED)
class YankedVersion(LeafData):
    """That a version is not to be used any more."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    reason: Written
    current: Annotated[str, "version that the tool has now; empty: none"]
    moved: Annotated[int, "installations that got another version"]
    stuck: Annotated[int, "installations for which there is none"]


@leaf_data(Kind.VERSION_TRUSTED, Kind.VERSION_DISTRUSTED)
class VersionTrust(LeafData):
    """Whether somebody vouches for the code of a version."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    build: Annotated[str, "digest of the code"]
    reason: Written


@leaf_data(
    Kind.DEPENDENCIES_QUEUED,
    Kind.DEPENDENCIES_STARTED,
    Kind.DEPENDENCIES_RELEASED,
)
class DependenciesOfVersion(LeafData):
    """Which dependencies it is about."""

    version: Annotated[str, "its number"]
    id: Annotated[str, "of the version"]
    lock: Annotated[str, "digest of the locked dependencies; empty: not locked yet"]


@leaf_data(Kind.DEPENDENCIES_LOCKED)
class LockedDependencies(DependenciesOfVersion):
    """Which packages were chosen."""

    packages: Annotated[int, "how many"]
    source: Annotated[str, "`manifest` or `index`"]


@leaf_data(Kind.DEPENDENCIES_BUILT)
class BuiltDependencies(DependenciesOfVersion):
    """That the packages are there to be used."""

    bytes: Annotated[int, "size of all of them"]


@leaf_data(Kind.DEPENDENCIES_UNRESOLVED, Kind.DEPENDENCIES_FAILED)
class FailedDependencies(DependenciesOfVersion):
    """Why they are not there."""

    code: Annotated[str, "of the failure"]


@leaf_data(Kind.DEPENDENCIES_RETRIED)
class RetriedDependencies(DependenciesOfVersion):
    """That it is tried again."""

    state: Annotated[str, "from which it goes on"]


@leaf_data(Kind.INSTALLATION_CHANGED)
class ChangedInstallation(LeafData):
    """How a tenant has set up a tool, after a change; what the configuration says stays out of it."""

    what: Annotated[str, "what was changed"]
    reason: Written
    state: Annotated[str, "of the installation"]
    version: Annotated[str, "that it runs; empty: none"]
    pin: Annotated[str, "versions that it keeps to; empty: what the publisher enables"]
    config: Annotated[str, "digest of the configuration; empty: none"]
    hosts: Annotated[int | None, "how many hosts it is limited to; null: not limited"]
    paths: Annotated[int | None, "how many paths it is limited to; null: not limited"]
    secrets: Annotated[dict[str, Any], "names of secrets, by the name that the tool has for them"]


@leaf_data(Kind.INSTALLATION_MOVED)
class MovedInstallation(LeafData):
    """That an installation got another version."""

    from_: Annotated[str, "version before; empty: none"]
    to: Annotated[str, "version after"]
    id: Annotated[str, "of that version"]
    why: Annotated[str, "what led to it"]


@leaf_data(Kind.SECRET_SET, Kind.SECRET_REMOVED)
class NamedSecret(LeafData):
    """Which secret; never its value."""

    name: Annotated[str, "of the secret"]
    number: Annotated[int, "how many times it was set"]


@leaf_data(Kind.CAPSULE_UPLOADED)
class UploadedCapsule(LeafData):
    """What is in a capsule."""

    digest: Annotated[str, "of the archive"]
    bytes: Annotated[int, "size of the archive"]
    signed_by: Annotated[str, "id of the publisher's key; empty: nobody"]
    tools: Annotated[list[Any], "id and version of each"]


@leaf_data(Kind.CAPSULE_READ)
class ReadCapsule(LeafData):
    """Which capsule somebody has downloaded."""

    digest: Annotated[str, "of the archive"]


@leaf_data(Kind.PUBLISHER_KEY_ADDED)
class AddedPublisherKey(LeafData):
    """Whose signatures count."""

    name: Annotated[str, "of the publisher"]
    key_id: Annotated[str, "of the public key"]


@leaf_data(Kind.PUBLISHER_KEY_REVOKED)
class RevokedPublisherKey(AddedPublisherKey):
    """Whose signatures count no more."""

    reason: Written


@leaf_data(Kind.PUBLISHING_CHANGED)
class ChangedPublishing(LeafData):
    """Under which rules a tenant takes capsules."""

    signatures_required: Annotated[bool, "whether one without a signature is refused"]
