"""The limits of grants become budgets; what was used in the current window goes along."""

from django.db import migrations, models
from django.db.models import Q

import toolhub.kernel.ids


def limits_become_budgets(apps, schema_editor):
    Grant = apps.get_model("access", "Grant")
    Budget = apps.get_model("access", "Budget")
    BudgetWindow = apps.get_model("access", "BudgetWindow")
    QuotaWindow = apps.get_model("access", "QuotaWindow")
    for grant in Grant.objects.exclude(calls_limit=None).iterator():
        budget = Budget.objects.create(
            id=toolhub.kernel.ids.new_id(),
            tenant_id=grant.tenant_id,
            scope="grant",
            grant_id=grant.pk,
            dimension="calls",
            amount=grant.calls_limit,
            window_s=grant.window_s,
            reason=grant.reason,
            set_by=grant.given_by,
        )
        for window in QuotaWindow.objects.filter(grant_id=grant.pk).iterator():
            BudgetWindow.objects.create(
                budget=budget, number=int(window.starts_at.timestamp()) // grant.window_s, used=window.used
            )


class Migration(migrations.Migration):
    dependencies = [("access", "0004_permissions")]

    operations = [
        migrations.AlterField(
            "budget",
            "scope",
            models.CharField(
                choices=[
                    ("tenant", "Tenant"),
                    ("agent", "Agent"),
                    ("tool", "Tool"),
                    ("grant", "Grant"),
                    ("manifest", "Manifest"),
                ],
                max_length=8,
            ),
        ),
        migrations.AddField("budgetwindow", "raised", models.BigIntegerField(default=0)),
        migrations.RemoveConstraint("budget", "budget_names_what_its_scope_says"),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                condition=Q(scope="tenant", agent=None, grant=None, tool="")
                | Q(scope="agent", agent__isnull=False, grant=None, tool="")
                | Q(scope__in=["tool", "manifest"], agent=None, grant=None) & ~Q(tool="")
                | Q(scope="grant", agent=None, grant__isnull=False, tool=""),
                name="budget_names_what_its_scope_says",
            ),
        ),
        migrations.RemoveConstraint("budgetwindow", "budget_window_never_below_zero"),
        migrations.AddConstraint(
            "budgetwindow",
            models.CheckConstraint(
                condition=Q(used__gte=0, reserved__gte=0, raised__gte=0), name="budget_window_never_below_zero"
            ),
        ),
        migrations.RunPython(limits_become_budgets, migrations.RunPython.noop),
    ]
