"""A migration of its own: PostgreSQL changes no table in the transaction that has just changed its rows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("access", "0005_budgets")]

    operations = [
        migrations.RemoveConstraint("grant", "grant_window_is_positive"),
        migrations.RemoveField("grant", "calls_limit"),
        migrations.RemoveField("grant", "window_s"),
        migrations.DeleteModel("QuotaWindow"),
    ]
