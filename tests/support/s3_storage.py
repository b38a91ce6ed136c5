"""S3 storage of tests: a server in this process that speaks S3, with one bucket."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET, WHO = (
    "evidence",
    {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"},
)


class S3Storage:
    def __init__(self, endpoint: str) -> None:
        self.endpoint, self.client = endpoint, boto3.client("s3", endpoint_url=endpoint)
        self.client.create_bucket(Bucket=BUCKET)

    def read_all(self) -> dict[str, bytes]:
        """Every object as it lies there, as a program that copies buckets gets it."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        names = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return {name: self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in names}

    def copy_to(self, folder: Path) -> None:
        for name, data in self.read_all().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


@contextmanager
def run_s3_storage(monkeypatch: Any) -> Iterator[S3Storage]:
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Storage(f"http://{host}:{port}")
    finally:
        server.stop()
