"""Check values of master keys: does a hub notice that it was given another hub's master keys, whatever they are called and
wherever they are kept?
"""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from evidence.keys import keystore as stores
from evidence.keys.check_values import check_value, unfit_keys
from evidence.keys.keystore import InMemoryKeyStore, get_keystore
from evidence.models import MasterKey, TenantKey
from evidence.problems import KeyUnavailable
from registry.models import Secret
from registry.secrets.services import set_secret
from tests.contracts.test_keystores import TOKEN, key_server
from toolhub.installation import check_that_keys_fit
from toolhub.management.commands import doctor
from toolhub.startup import refuse_foreign_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)
OURS, FURTHER, FOREIGN = b"o" * 32, b"f" * 32, b"x" * 32
CONTEXT = b"a tenant"


@pytest.fixture(params=["file", "env", "service"])
def give(request: Any, settings: Any, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Have the hub start with these keys, the last one in use."""
    with ExitStack() as services:

        def start(**keys: bytes) -> None:
            current = list(keys)[-1]
            text = json.dumps(
                {"current": current, "keys": {name: base64.b64encode(key).decode() for name, key in keys.items()}}
            )
            settings.TOOLHUB_KEYSTORE, settings.TOOLHUB_MASTER_KEYS = request.param, text
            settings.TOOLHUB_KEY_FILE = tmp_path / "keys.json"
            settings.TOOLHUB_KEY_FILE.write_text(text)
            settings.TOOLHUB_KEY_SERVICE_TOKEN = TOKEN
            settings.TOOLHUB_KEY_SERVICE_URL = services.enter_context(key_server(InMemoryKeyStore(keys, current)))
            stores.get_keystore.cache_clear()

        yield start
        stores.get_keystore.cache_clear()


def store(name: str, by: Any) -> None:
    set_secret(name=name, value="of this hub only", by=by)


@pytest.mark.req("SPEC-10")
def test_with_the_keys_of_another_hub_nothing_is_stored_hashed_or_signed(
    give: Callable[..., None], operator: Person
) -> None:
    give(k1=OURS)
    store("ours", operator.by)
    hashed = get_keystore().fingerprint(b"x", context=CONTEXT)
    check_that_keys_fit()
    refuse_foreign_keys()

    give(k1=FOREIGN)

    said = "The master key k1 is not the one that this database was written with"
    for act in (
        lambda: store("theirs", operator.by),
        lambda: get_keystore().wrap(b"0" * 32, context=CONTEXT),
        lambda: get_keystore().fingerprint(b"x", context=CONTEXT),
        lambda: get_keystore().derive(b"tokens"),
        check_that_keys_fit,
        doctor.keys,
    ):
        with pytest.raises(KeyUnavailable, match=said):
            act()
    with pytest.raises(SystemExit, match=said):  # how web, worker, keeper and upkeep begin
        refuse_foreign_keys()
    assert list(Secret.objects.values_list("name", flat=True)) == ["ours"]

    give(k1=OURS)
    assert "works" in doctor.keys()  # noqa: SIM118
    assert get_keystore().fingerprint(b"x", context=CONTEXT) == hashed


@pytest.mark.req("SPEC-10")
def test_a_database_of_before_takes_its_check_values_from_keys_that_open_what_it_holds(
    give: Callable[..., None], operator: Person
) -> None:
    give(k1=OURS)
    store("ours", operator.by)
    MasterKey.objects.all().delete()

    for keys in ({"k1": FOREIGN}, {"k9": FOREIGN}):
        give(**keys)
        with pytest.raises(KeyUnavailable, match="not the one"):
            get_keystore().wrap(b"0" * 32, context=CONTEXT)
        assert not MasterKey.objects.exists()
    give(k1=OURS)
    refuse_foreign_keys()

    assert MasterKey.objects.get().check_value == check_value(get_keystore())[1]
    store("more", operator.by)


@pytest.mark.req("SPEC-10")
def test_a_further_key_is_taken_beside_one_that_fits_and_by_no_other_hub(
    give: Callable[..., None], operator: Person
) -> None:
    give(k1=OURS)
    store("ours", operator.by)

    give(k1=FOREIGN, k2=FURTHER)
    with pytest.raises(KeyUnavailable, match="master key k2 is not the one"):
        get_keystore().wrap(b"0" * 32, context=CONTEXT)
    give(k1=OURS, k2=FURTHER)
    store("more", operator.by)

    assert set(MasterKey.objects.values_list("key_id", flat=True)) == {"k1", "k2"}
    give(k1=OURS, k2=FOREIGN)
    with pytest.raises(KeyUnavailable, match="master key k2 is not the one"):
        store("again", operator.by)


@pytest.mark.req("SPEC-10")
def test_a_new_hub_takes_the_first_keys_that_it_is_given(give: Callable[..., None]) -> None:
    assert not TenantKey.objects.exists()
    give(k1=OURS)

    refuse_foreign_keys()

    assert unfit_keys(get_keystore()) == []
    assert MasterKey.objects.get().key_id == "k1"
    assert OURS.hex() not in MasterKey.objects.get().check_value


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("give", ["file"], indirect=True)
def test_a_file_that_is_changed_for_another_hubs_under_a_running_process_is_noticed(
    give: Callable[..., None], settings: Any, operator: Person
) -> None:
    give(k1=OURS)
    store("ours", operator.by)
    text = settings.TOOLHUB_KEY_FILE.read_text()
    settings.TOOLHUB_KEY_FILE.write_text(
        text.replace(base64.b64encode(OURS).decode(), base64.b64encode(FOREIGN).decode()) + "\n"
    )

    with pytest.raises(KeyUnavailable, match="not the one"):
        store("theirs", operator.by)


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("give", ["file"], indirect=True)
def test_a_rotation_adds_no_key_to_the_file_of_another_hub_and_works_with_its_own(
    give: Callable[..., None], settings: Any, operator: Person
) -> None:
    give(k1=OURS)
    store("ours", operator.by)
    give(k1=FOREIGN)
    before = settings.TOOLHUB_KEY_FILE.read_text()
    for words in ([], ["--prepare"]):
        with pytest.raises(CommandError, match="not the one"):
            call_command("rotate_keys", *words, stdout=StringIO())
    assert settings.TOOLHUB_KEY_FILE.read_text() == before

    give(k1=OURS)
    call_command("rotate_keys", stdout=StringIO())
    call_command("rotate_keys", "--forget", stdout=StringIO())

    assert Secret.objects.get().key_id == "k2"
    assert set(MasterKey.objects.values_list("key_id", flat=True)) == {"k1", "k2"}
    check_that_keys_fit()
