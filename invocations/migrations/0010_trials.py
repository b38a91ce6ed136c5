"""Trials: replays of no call and no period, which run a version under review with written arguments."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("invocations", "0009_run_profiles"),
    ]

    operations = [
        migrations.AlterField(
            model_name="replay",
            name="what",
            field=models.CharField(
                choices=[("facts", "Facts"), ("decisions", "Decisions"), ("runs", "Runs"), ("trial", "Trial")],
                max_length=12,
            ),
        ),
        migrations.RemoveConstraint(model_name="replay", name="replay_of_a_call_or_a_period"),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.CheckConstraint(
                condition=Q(invocation__isnull=False, since=None, until=None, what="runs")
                | Q(
                    invocation=None,
                    since__isnull=False,
                    until__isnull=False,
                    what__in=["facts", "decisions", "runs"],
                )
                | Q(invocation=None, since=None, until=None, version__isnull=False, what="trial"),
                name="replay_of_a_call_a_period_or_a_version",
            ),
        ),
    ]
