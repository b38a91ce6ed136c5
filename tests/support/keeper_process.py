"""A keeper in a process of its own: ``python -m tests.support.keeper_process DATABASE FOLDER WORD…`` does what the words
say, one after the other.

``tables`` and ``key``, together ``migrate``; ``write``: 11 facts of each of three tenants; ``seal``: until nothing is pending;
``check``: all logs, and print what there is; ``index``: all that is sealed, some leaves at a time, in short spans; ``find``: hold
the index against the leaves, and print how many there are. The signing key is in the folder, or in the token that
TOOLHUB_SIGNING_PKCS11_URI names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import UUID

import django
from django.conf import settings

TENANTS = [UUID(int=n << 64 | 7 << 76 | 2 << 62) for n in (11, 12, 13)]
EACH = 11


def main(database: str, folder: str, *words: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    settings.TOOLHUB_SIGNING_KEY_FILE = Path(folder) / "signing-keys.json"
    if token := os.environ.get("TOOLHUB_SIGNING_PKCS11_URI"):
        settings.TOOLHUB_SIGNER, settings.TOOLHUB_SIGNING_PKCS11_URI, settings.TOOLHUB_SIGNING_KEY_FILE = (
            "token",
            token,
            None,
        )
    django.setup()
    from django.core.management import call_command

    from evidence.log import sealer
    from evidence.log.signer import make_signing_key
    from evidence.models import Fact, Indexed, Pending, PostingBucket, Seal
    from evidence.search import indexer
    from tests.support.evidence_logs import check_log, write_facts
    from tests.support.search_index import compute_index, read_index, shorten_spans

    sealer.FROZEN_AFTER_S = 2
    shorten_spans(setattr)
    for word in words:
        if word in ("migrate", "tables"):
            call_command("migrate", verbosity=0)
        if word in ("migrate", "key"):
            make_signing_key()
        if word == "write":
            for tenant_id in TENANTS:
                write_facts(tenant_id, EACH)
        elif word == "seal":
            sealer.run_turn()
            while Pending.objects.exists():
                sealer.run_turn()
        elif word == "check":
            for tenant_id in set(Fact.objects.values_list("tenant_id", flat=True)):
                check_log(tenant_id)
            mine = {"tenant_id__in": TENANTS}
            facts, leaves = Fact.objects.filter(**mine).count(), Seal.objects.filter(**mine).count()
            print(f"{facts} facts, {leaves} leaves, {Pending.objects.count()} pending")
        elif word == "index":
            indexer.index_all()
        elif word == "find":
            wrong = [tenant_id for tenant_id in TENANTS if read_index(tenant_id) != compute_index(tenant_id)]
            sizes = sum(Indexed.objects.filter(tenant_id__in=TENANTS).values_list("size", flat=True))
            levels = set(PostingBucket.objects.values_list("level", flat=True))
            print(f"{sizes} leaves, {len(wrong)} wrong, level {max(levels)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
