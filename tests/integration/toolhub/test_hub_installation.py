"""Hub installation: does a new hub get its keys and its owner, and does a hub that lost its keys say so?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from guardian.shortcuts import assign_perm, get_perms, remove_perm

from access.members import services as members
from access.middleware import principal_of_user
from access.models import Notification, Tenant
from access.notifications import channels
from access.roles import ROLE_PERMISSIONS, Role
from evidence import services as evidence
from evidence.keys import keystore as stores
from evidence.keys.key_file import read_key_file
from evidence.keys.rotation import rewrap_everything
from evidence.models import Fact, Snapshot, TenantKey
from kernel.problems import Problem
from registry.models import Secret
from tests.support.sealed_values import seal, seal_as_before

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub(tmp_path: Path, settings: Any) -> Iterator[Any]:
    """A hub whose keys are in a folder of its own."""
    settings.TOOLHUB_KEY_FILE = tmp_path / "keys.json"
    settings.TOOLHUB_SECRET_KEY_FILE = tmp_path / "secret-key"
    stores.get_keystore.cache_clear()
    yield settings
    stores.get_keystore.cache_clear()


def init(*options: str) -> str:
    said = StringIO()
    call_command("init", *options, stdout=said)
    return said.getvalue()


def rotate(*options: str) -> str:
    said = StringIO()
    call_command("rotate_keys", *options, stdout=said, stderr=said)
    return said.getvalue()


# init.


@pytest.mark.django_db(transaction=True)  # as when it is migrated: what was written before is committed
def test_init_makes_keys_owner_and_tenant_and_shows_a_generated_password_once(hub: Any) -> None:
    said, again = init(), init()

    password = re.search(r"shown this once: (\S+)", said)
    assert password
    owner = get_user_model().objects.get(username="owner")
    assert owner.check_password(password[1])
    assert not owner.is_superuser
    assert password[1] not in again
    assert "The hub belongs to owner." in again
    tenant = Tenant.objects.get(slug="main")
    allowed = principal_of_user(owner, tenant).allowed
    assert allowed == ROLE_PERMISSIONS[Role.OWNER] | {"hub.manage"}
    assert hub.TOOLHUB_KEY_FILE.stat().st_mode & 0o777 == 0o600
    kinds = set(Fact.objects.filter(tenant_id=tenant.pk).values_list("kind", flat=True))
    assert kinds == {"tenant.created", "membership.given", "permission.given"}


@pytest.mark.parametrize("source", ["environment", "file"])
def test_the_owners_password_may_be_given(source: str, hub: Any, tmp_path: Path) -> None:
    given = "a password that was given"
    if source == "environment":
        hub.TOOLHUB_OWNER_PASSWORD = given
    else:
        (tmp_path / "password").write_text(given + "\n")
        hub.TOOLHUB_OWNER_PASSWORD_FILE = str(tmp_path / "password")
    hub.TOOLHUB_OWNER_NAME, hub.TOOLHUB_OWNER_EMAIL = "olga", "olga@example.org"

    said = init()

    olga = get_user_model().objects.get(username="olga")
    assert olga.check_password(given)
    assert olga.email == "olga@example.org"
    assert given not in said


@pytest.mark.parametrize("trouble", ["weak", "no file", "taken"])
def test_what_keeps_an_owner_from_being_made_is_said_and_nothing_is_half_done(trouble: str, hub: Any) -> None:
    match trouble:
        case "weak":
            hub.TOOLHUB_OWNER_PASSWORD = "short"
        case "no file":
            hub.TOOLHUB_OWNER_PASSWORD_FILE = "/nowhere/password"
        case "taken":
            get_user_model().objects.create_user("owner")

    with pytest.raises(CommandError):
        init()

    assert not Tenant.objects.exists()
    assert not Group.objects.filter(name="hub owners").exists()


def test_init_does_not_make_a_new_key_where_values_need_a_lost_one(hub: Any, operator: Person) -> None:
    init("--keys-only")
    seal(operator.by.tenant_id, 1)
    hub.TOOLHUB_KEY_FILE.unlink()

    with pytest.raises(CommandError, match="is lost"):
        init()
    stores.get_keystore.cache_clear()
    with pytest.raises(Problem, match="is lost"):  # nor does the embedded default, which otherwise makes its own
        stores.get_keystore()

    assert not hub.TOOLHUB_KEY_FILE.exists()


def test_a_key_file_of_another_hub_is_said(hub: Any, operator: Person) -> None:
    init("--keys-only")
    rotate()
    seal(operator.by.tenant_id, 1)
    hub.TOOLHUB_KEY_FILE.unlink()
    from evidence.keys.key_file import make_key_file

    make_key_file(hub.TOOLHUB_KEY_FILE)

    with pytest.raises(CommandError, match="wrapped with the key k2"):
        init()


def in_production(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLHUB_", "DJANGO_"))}
    env |= {
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_DATABASE_URL": "postgresql://hub@127.0.0.1:1/hub",
        "TOOLHUB_REDIS_URL": "redis://127.0.0.1:1/0",
        "TOOLHUB_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "toolhub.settings",
    }
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [["-c", "import toolhub.asgi"], ["manage.py", "upkeep", "--once"]])
def test_a_production_process_does_not_start_without_keys_and_makes_none(command: list[str], tmp_path: Path) -> None:
    done = in_production(tmp_path, *command)

    assert done.returncode != 0
    assert "There is no key to sign sessions with" in done.stderr
    assert "keys.json does not exist" in done.stderr
    assert "manage.py init" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_doctor_has_a_line_for_lost_keys(tmp_path: Path) -> None:
    done = in_production(tmp_path, "manage.py", "doctor")

    assert done.returncode == 2
    assert re.search(r"WRONG +keys +There is no key to sign sessions with", done.stdout), done.stdout + done.stderr


# Rotation.


@pytest.fixture
def sealed(hub: Any, operator: Person) -> list[Snapshot]:
    """Seven snapshots, a secret and a webhook, all wrapped with the first key."""
    init("--keys-only")
    tenant_id = operator.by.tenant_id
    key_id, wrapped = stores.get_keystore().wrap(b"s" * 32, context=tenant_id.bytes)
    Secret.objects.create(
        tenant_id=tenant_id, name="a", key_id=key_id, wrapped_key=wrapped, nonce=b"n", ciphertext=b"c", set_by="usr_1"
    )
    hub.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    channels.set_notification(channel="webhook", target="http://127.0.0.1/x", events=["review.waiting"], by=operator.by)
    channels.set_notification(channel="email", target="a@example.org", events=["review.waiting"], by=operator.by)
    return [seal_as_before(tenant_id, {"n": n}) for n in range(7)]


def key_ids() -> set[str]:
    return {
        *Snapshot.objects.values_list("key_id", flat=True),
        *Secret.objects.values_list("key_id", flat=True),
        *Notification.objects.exclude(channel="email").values_list("secret_key_id", flat=True),
    }


def test_a_rotation_wraps_everything_anew_and_changes_no_value(sealed: list[Snapshot], hub: Any) -> None:
    before = {row.pk: bytes(row.ciphertext) for row in sealed}

    said = rotate()

    assert key_ids() == {"k2"}
    assert "1 notifications, 1 secrets, 7 snapshots" in said
    for number, row in enumerate(Snapshot.objects.order_by("pk")):
        assert evidence.open_values(row) == {"n": number}
        assert bytes(row.ciphertext) == before[row.pk]
    fact = Fact.objects.get(kind="master_keys.rotated")
    assert fact.tenant_id == sealed[0].tenant_id
    assert b'"rewrapped":{"notifications":1,"secrets":1,"snapshots":7}' in bytes(fact.leaf)
    assert set(read_key_file(hub.TOOLHUB_KEY_FILE)[0]) == {"k1", "k2"}


@pytest.mark.req("SPEC-10")
def test_of_values_under_the_key_of_a_person_only_the_key_of_the_tenant_is_wrapped_anew(
    hub: Any, operator: Person
) -> None:
    init("--keys-only")
    rows = [seal(operator.by.tenant_id, {"n": n}) for n in range(7)]

    said = rotate()

    assert "Wrapped anew: 1 tenant keys." in said
    assert [evidence.open_values(row) for row in Snapshot.objects.order_by("pk")] == [
        {"n": n} for n in range(len(rows))
    ]
    assert TenantKey.objects.get().key_id == "k2"


def test_an_interrupted_rotation_goes_on_where_it_stopped(
    sealed: list[Snapshot], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PulledPlug(Exception):
        pass

    def stop(what: str, count: int) -> None:
        raise PulledPlug

    from evidence.keys.key_file import add_key

    add_key(hub.TOOLHUB_KEY_FILE, activate=True)
    with pytest.raises(PulledPlug):
        rewrap_everything(to="k2", tenants=[], said=stop, batch=3)
    assert Snapshot.objects.filter(key_id="k2").count() == 3

    said = rotate()

    assert "Going on with a rotation to k2" in said
    assert "4 snapshots" in said
    assert key_ids() == {"k2"}
    assert set(read_key_file(hub.TOOLHUB_KEY_FILE)[0]) == {"k1", "k2"}


def test_old_keys_are_destroyed_only_when_they_wrap_nothing_and_the_first_stays(
    sealed: list[Snapshot], hub: Any
) -> None:
    rotate()
    rotate("--prepare")
    assert "Destroyed: none" in rotate("--forget")
    rotate()

    assert key_ids() == {"k3"}
    assert "Destroyed: k2" in rotate("--forget")
    assert set(read_key_file(hub.TOOLHUB_KEY_FILE)[0]) == {"k1", "k3"}
    assert evidence.open_values(Snapshot.objects.order_by("pk")[0]) == {"n": 0}


def test_what_no_key_opens_is_counted_and_left_alone(sealed: list[Snapshot], hub: Any) -> None:
    broken = sealed[3]
    Snapshot.objects.filter(pk=broken.pk).update(wrapped_key=b"x" * 60)

    with pytest.raises(SystemExit) as ended:
        rotate()

    assert ended.value.code == 2
    assert Snapshot.objects.filter(key_id="k2").count() == 6
    assert Snapshot.objects.get(pk=broken.pk).key_id == "k1"
    assert "Destroyed: none" in rotate("--forget")


# Roles after an upgrade.


@pytest.mark.django_db(transaction=True)  # as when it is migrated: what was written before is committed
def test_an_upgrade_gives_the_groups_of_older_tenants_what_their_role_allows_now(tenant: Tenant) -> None:
    group = Group.objects.get(name=members.group_name(tenant, Role.OPERATOR))
    remove_perm("access.halts.throw", group, tenant)
    assign_perm("access.evidence.reveal", group, tenant)

    call_command("migrate", verbosity=0, interactive=False)

    assert set(get_perms(group, tenant)) == ROLE_PERMISSIONS[Role.OPERATOR]
    fact = Fact.objects.get(kind="permission.given", tenant_id=tenant.pk)
    assert b'"given":["halts.throw"]' in bytes(fact.leaf)
    assert b'"taken":["evidence.reveal"]' in bytes(fact.leaf)
    assert members.sync_roles() == 0
