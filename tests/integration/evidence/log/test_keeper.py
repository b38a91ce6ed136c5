"""The keeper: does the keeper start, seal, say how it is, and end when it is told to?"""

from __future__ import annotations

import threading
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.conf import settings as configured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from evidence.log import sealer, signer
from evidence.models import Log, Pending
from kernel.ids import new_id
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts
from toolhub.management.commands import doctor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def key_file(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The signer of this process reads a file that is not there yet."""
    settings.TOOLHUB_SIGNING_KEY_FILE = path = tmp_path / "signing-keys.json"
    signer.get_signer.cache_clear()
    yield path
    signer.get_signer.cache_clear()


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_the_first_keeper_makes_its_key_and_seals(key_file: Path) -> None:
    tenant_id, output = new_id(), StringIO()
    write_facts(tenant_id, 5)

    call_command("keep", "--once", stdout=output)

    assert check_log(tenant_id) == 5
    assert "Back it up" in output.getvalue()
    assert key_file.stat().st_mode & 0o077 == 0


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_a_keeper_whose_key_was_lost_says_so_and_seals_nothing(key_file: Path) -> None:
    call_command("keep", "--once", stdout=StringIO())
    key_file.unlink()
    write_facts(new_id(), 1)

    with pytest.raises(CommandError, match="No other was made"):
        call_command("keep", "--once")
    assert Pending.objects.exists()


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_the_loop_seals_until_it_is_told_to_stop() -> None:
    tenant_id, stop = new_id(), threading.Event()
    with signing_with():
        write_facts(tenant_id, 3)
        thread = threading.Thread(target=sealer.run_sealer, args=(stop,))
        thread.start()
        waited = threading.Event()
        while Pending.objects.filter(tenant_id=tenant_id).exists() and thread.is_alive():
            waited.wait(0.05)
        stop.set()
        thread.join(30)

        assert not thread.is_alive()
        assert check_log(tenant_id) == 3


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db
def test_doctor_says_whether_facts_are_sealed(settings: Any) -> None:
    settings.TOOLHUB_EMBEDDED, settings.TOOLHUB_SIGNING_KEY_FILE = False, None
    write_facts(new_id(), 1)
    with signing_with():
        seal_everything()
    assert doctor.log().startswith("facts pending: 0; signed last at")

    Log.objects.update(signed_at=timezone.now() - timedelta(minutes=11))

    with pytest.raises(LookupError, match="Is a keeper running"):
        doctor.log()


@pytest.mark.req("TOOLS-18")
def test_in_compose_the_keeper_alone_has_the_key() -> None:
    services = yaml.safe_load((configured.BASE_DIR / "docker-compose.yml").read_text())["services"]
    holders = {name for name, each in services.items() if any("/signing" in place for place in each.get("volumes", []))}
    told = {name for name, each in services.items() if each.get("environment", {}).get("TOOLHUB_SIGNING_KEY_FILE")}

    assert holders == told == {"keeper"}
    assert services["keeper"]["command"] == ["python", "manage.py", "keep"]
    assert "ports" not in services["keeper"]
