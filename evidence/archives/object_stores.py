"""Object stores: where an archive is kept, and what may fail of that.

An object is written once and never replaced, but for the few that say how far a log has come. Leaves lie in a bucket compressed, as
their ``Content-Encoding`` says: those of one tool resemble each other, and take a tenth.
"""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from evidence.verify.merkle import TILE_WIDTH
from evidence.verify.problems import MalformedEvidence
from evidence.verify.tiles import MAX_LEAF_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = TILE_WIDTH * (2 + MAX_LEAF_BYTES)  # of an object: a full bundle of the longest leaves
MAX_PACKED_BYTES = MAX_BYTES + (MAX_BYTES >> 10) + 1024  # what cannot be compressed gets a little longer
GZIP, GZIP_WINDOW = "gzip", 16 + zlib.MAX_WBITS
MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
THERE_ALREADY = frozenset({"PreconditionFailed", "412"})


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds to connect, and between two parts of an answer; how often a bucket is asked."""

    connect_s: float
    read_s: float
    attempts: int


OF_RUNS = Patience(connect_s=10, read_s=60, attempts=5)
OF_READERS = Patience(connect_s=2, read_s=5, attempts=2)  # somebody waits for a page, and a transaction with them


class ArchiveUnavailable(Exception):
    """The store does not do what it was asked for. The message says what, and why."""


class ObjectStore(Protocol):
    def write_new(self, name: str, data: bytes, *, compress: bool = False) -> None:
        """Keep ``data`` under this name, unless there is an object of that name: then that stays.

        ``compress``: where whoever reads it is told how to unpack it.
        """

    def replace(self, name: str, data: bytes) -> None: ...

    def read(self, name: str) -> bytes | None:
        """None: there is no such object. Raises :class:`MalformedEvidence` for one that the hub cannot have written: it is longer than
        any, or cannot be unpacked.
        """


class FolderStore:
    """A folder: of a disk that is written once, or of a file server. ``is_made``: one that is not there does not answer."""

    def __init__(self, folder: Path, *, is_made: bool = False) -> None:
        self._folder, self._is_made = folder, is_made

    def __str__(self) -> str:
        return str(self._folder)

    def write_new(self, name: str, data: bytes, *, compress: bool = False) -> None:
        del compress  # nobody would be told
        with self._written(name, data) as beside, suppress(FileExistsError):
            os.link(beside, self._folder / name)

    def replace(self, name: str, data: bytes) -> None:
        with self._written(name, data) as beside:
            beside.rename(self._folder / name)

    def read(self, name: str) -> bytes | None:
        try:
            with (self._folder / name).open("rb") as file:
                return _check_length(file.read(MAX_BYTES + 1), name)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            if self._folder.is_dir() or not self._is_made:
                return None
            raise ArchiveUnavailable(f"{self._folder} is not there: is its disk mounted?") from error
        except OSError as error:
            raise ArchiveUnavailable(f"{self._folder / name} cannot be read: {error.strerror}.") from error

    @contextmanager
    def _written(self, name: str, data: bytes) -> Iterator[Path]:
        """The whole file beside its place, on the disk, so that nobody ever reads half of it."""
        place = self._folder / name
        beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                yield beside
            finally:
                beside.unlink(missing_ok=True)
            folder = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise ArchiveUnavailable(f"{place} cannot be written: {error.strerror}.") from error


class S3Store:
    """A bucket of a storage that speaks S3 and knows conditional writes (``If-None-Match``).

    Who the hub is there is found where programs of that world look: ``AWS_ACCESS_KEY_ID`` and its like, a profile, the machine's role.
    """

    def __init__(self, bucket: str, prefix: str, *, endpoint: str = "", patience: Patience = OF_RUNS) -> None:
        import boto3  # noqa: PLC0415  half a second, of which no other process has any use
        from botocore.config import Config  # noqa: PLC0415  the same

        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        config = Config(
            connect_timeout=patience.connect_s,
            read_timeout=patience.read_s,
            retries={"mode": "standard", "total_max_attempts": patience.attempts},
            # Else objects are sent in a form (`aws-chunked`) that some storages keep, and others refuse. All is read back anyway.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._client = boto3.client("s3", endpoint_url=endpoint or None, config=config)

    def __str__(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def write_new(self, name: str, data: bytes, *, compress: bool = False) -> None:
        body = {"Body": gzip.compress(data, mtime=0), "ContentEncoding": GZIP} if compress else {"Body": data}
        self._ask("put_object", name, missing=THERE_ALREADY, IfNoneMatch="*", **body)

    def replace(self, name: str, data: bytes) -> None:
        self._ask("put_object", name, Body=data)

    def read(self, name: str) -> bytes | None:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415  as above

        found = self._ask("get_object", name, missing=MISSING)
        if found is None:
            return None
        try:
            with closing(found["Body"]) as body:
                data: bytes = body.read(MAX_PACKED_BYTES)
                data += body.read(1)  # nothing: then it was whole, which is looked at only now
        except (BotoCoreError, OSError) as error:
            raise ArchiveUnavailable(f"{self}/{name} was not read to its end: {error}") from error
        encodings = [each.strip() for each in found.get("ContentEncoding", "").split(",")]
        return _unpack(data, name) if GZIP in encodings else _check_length(data, name)

    def _ask(
        self, what: str, name: str, *, missing: frozenset[str] = frozenset(), **more: Any
    ) -> dict[str, Any] | None:
        """None for an answer whose code is in ``missing``."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  as above

        try:
            answer: dict[str, Any] = getattr(self._client, what)(Bucket=self._bucket, Key=self._prefix + name, **more)
        except ClientError as error:
            if str(error.response.get("Error", {}).get("Code", "")) in missing:
                return None
            raise ArchiveUnavailable(f"{self}/{name}: {error}") from error
        except BotoCoreError as error:
            raise ArchiveUnavailable(f"{self} cannot be asked: {error}") from error
        return answer


def _check_length(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise MalformedEvidence(f"{name} is longer than any object of an archive.")
    return data


def _unpack(packed: bytes, name: str) -> bytes:
    """No further than an object may be long, whatever it would become."""
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        data = _check_length(unpacker.decompress(packed, MAX_BYTES + 1), name)
    except zlib.error as error:
        raise MalformedEvidence(f"{name} cannot be unpacked: {error}.") from error
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedEvidence(f"{name} cannot be unpacked: it was cut, or something stands behind it.")
    return data


def open_store(url: str, *, endpoint: str = "", patience: Patience = OF_RUNS) -> ObjectStore:
    """``s3://bucket/prefix`` or ``file:///folder``, as :func:`kernel.variables.read_archive_url` has read it."""
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return S3Store(parts.netloc, unquote(parts.path), endpoint=endpoint, patience=patience)
    return FolderStore(Path(unquote(parts.path)), is_made=patience is OF_READERS)
