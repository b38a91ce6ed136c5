"""An exporter in a process of its own: ``python -m tests.support.exporter_process DATABASE FOLDER WORD…`` does what the words say.

``migrate``; ``write``: facts of a tenant, sealed; ``ask``: for an export of each format; ``export``: piece by piece until none waits;
``check``: print of each what it is. The keys are in the folder, where the contents go too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import UUID

import django
from django.conf import settings

TENANT = UUID(int=21 << 64 | 7 << 76 | 2 << 62)
FACTS, WINDOW = 200, 30


def main(database: str, folder: str, *words: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    settings.TOOLHUB_SIGNING_KEY_FILE = Path(folder) / "signing-keys.json"
    settings.TOOLHUB_KEY_FILE = Path(folder) / "keys.json"
    settings.TOOLHUB_LEASE_S = 0  # whoever comes next need not wait until one that was killed is given up
    django.setup()
    from django.core.management import call_command

    from evidence.exports import selection
    from evidence.exports.jobs import advance_next
    from evidence.exports.services import make_export
    from evidence.exports.storage import iter_pieces
    from evidence.keys.key_file import make_key_file
    from evidence.log.signer import make_signing_key
    from evidence.models import ExportFormat, ExportJob, Seal
    from kernel.principal import Principal
    from tests.support.evidence_logs import seal_everything, write_facts

    selection.WINDOW = WINDOW
    for word in words:
        if word == "migrate":
            call_command("migrate", verbosity=0)
            make_key_file(settings.TOOLHUB_KEY_FILE)
            make_signing_key()
        elif word == "write":
            write_facts(TENANT, FACTS)
            seal_everything()
        elif word == "ask":
            stop = Seal.objects.filter(tenant_id=TENANT).count()
            for format in ExportFormat.values:
                make_export(format=format, stop=stop, by=Principal.system("test", tenant_id=TENANT))
        elif word == "export":
            while advance_next():
                pass
        else:
            for job in ExportJob.objects.order_by("id"):
                (Path(folder) / f"{job.format}").write_bytes(b"".join(iter_pieces(job)))
                print(job.format, job.state, job.rows, job.stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
