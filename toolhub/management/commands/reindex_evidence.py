"""Make the index of the search of facts again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.models import Tenant
from evidence.models import GLOBAL_LOG, Log
from evidence.search.indexer import forget_index, index_tenant
from kernel.ids import encode


class Command(BaseCommand):
    help = (
        "Rebuild the search index of facts from the logs, for one tenant or for all. Meanwhile searches find what is "
        "indexed already; calls and the sealer continue."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--tenant", default="", help="the tenant's short name; all tenants if omitted")

    def handle(self, *args: Any, tenant: str = "", **options: Any) -> None:
        logs = Log.objects.exclude(tenant_id=GLOBAL_LOG)
        if tenant:
            found = Tenant.objects.filter(slug=tenant).first()
            if found is None:
                raise CommandError(f"There is no tenant {tenant}.")
            logs = logs.filter(tenant_id=found.pk)
        for log in logs.order_by("tenant_id"):
            forget_index(log.tenant_id)
            size = index_tenant(log.tenant_id)
            self.stdout.write(f"{encode('ten', log.tenant_id)}: {size} facts are indexed.")
