"""An erasure names the texts of facts that it takes: these facts are found with the others that say what went. Calls go on meanwhile; an
index that an interruption left unfinished is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations, models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import StateApps

BEFORE = ["retention.applied", "erasure.asked", "erasure.finished"]
AFTER = [*BEFORE, "words.erased"]


def forwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _make(schema_editor, AFTER)


def backwards(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _make(schema_editor, BEFORE)


def _make(schema_editor: BaseDatabaseSchemaEditor, kinds: list[str]) -> None:
    beside = "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    among = ", ".join(f"'{kind}'" for kind in kinds)
    schema_editor.execute(f"DROP INDEX {beside} IF EXISTS fact_of_forgetting")
    schema_editor.execute(
        f"CREATE INDEX {beside} fact_of_forgetting ON evidence_fact (tenant_id) WHERE kind IN ({among})"
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("evidence", "0013_facts_of_finished_erasures")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(forwards, backwards)],
            state_operations=[
                migrations.RemoveIndex(model_name="fact", name="fact_of_forgetting"),
                migrations.AddIndex(
                    model_name="fact",
                    index=models.Index(
                        fields=["tenant_id"],
                        name="fact_of_forgetting",
                        condition=models.Q(kind__in=AFTER),
                    ),
                ),
                # Choices are nothing to the database; on SQLite it would write the table anew.
                migrations.AlterField(
                    model_name="fact", name="kind", field=models.CharField(max_length=40, choices=[('invocation.began', 'Invocation Began'), ('invocation.ended', 'Invocation Ended'), ('dry_run.began', 'Dry Run Began'), ('dry_run.ended', 'Dry Run Ended'), ('invocation.preflighted', 'Invocation Preflighted'), ('invocation.held', 'Invocation Held'), ('invocation.resumed', 'Invocation Resumed'), ('invocation.cancel_asked', 'Invocation Cancel Asked'), ('invocation.replayed', 'Invocation Replayed'), ('invocation.retried', 'Invocation Retried'), ('invocation.resolved', 'Invocation Resolved'), ('invocation.rerun', 'Invocation Rerun'), ('replay.began', 'Replay Began'), ('replay.ended', 'Replay Ended'), ('request.rejected', 'Request Rejected'), ('invocation.segment', 'Invocation Segment'), ('callback.made', 'Callback Made'), ('callback.rotated', 'Callback Rotated'), ('callback.disabled', 'Callback Disabled'), ('callback.delivered', 'Callback Delivered'), ('callback.failed', 'Callback Failed'), ('callback.redelivered', 'Callback Redelivered'), ('chain.began', 'Chain Began'), ('chain.ended', 'Chain Ended'), ('chain.refused', 'Chain Refused'), ('chain.cancel_asked', 'Chain Cancel Asked'), ('tool.registered', 'Tool Registered'), ('tool.reviewed', 'Tool Reviewed'), ('tool.enabled', 'Tool Enabled'), ('tool.paused', 'Tool Paused'), ('tool.deprecated', 'Tool Deprecated'), ('tool.shared', 'Tool Shared'), ('tool.unshared', 'Tool Unshared'), ('version.staged', 'Version Staged'), ('version.yanked', 'Version Yanked'), ('version.trusted', 'Version Trusted'), ('version.distrusted', 'Version Distrusted'), ('dependencies.locked', 'Dependencies Locked'), ('dependencies.unresolved', 'Dependencies Unresolved'), ('dependencies.queued', 'Dependencies Queued'), ('dependencies.started', 'Dependencies Started'), ('dependencies.built', 'Dependencies Built'), ('dependencies.failed', 'Dependencies Failed'), ('dependencies.retried', 'Dependencies Retried'), ('dependencies.released', 'Dependencies Released'), ('installation.changed', 'Installation Changed'), ('installation.moved', 'Installation Moved'), ('secret.set', 'Secret Set'), ('secret.removed', 'Secret Removed'), ('capsule.uploaded', 'Capsule Uploaded'), ('capsule.read', 'Capsule Read'), ('publisher_key.added', 'Publisher Key Added'), ('publisher_key.revoked', 'Publisher Key Revoked'), ('publishing.changed', 'Publishing Changed'), ('file.stored', 'File Stored'), ('file.read', 'File Read'), ('file.removed', 'File Removed'), ('artifact.read', 'Artifact Read'), ('artifact.removed', 'Artifact Removed'), ('halt.thrown', 'Halt Thrown'), ('halt.lifted', 'Halt Lifted'), ('policy.drafted', 'Policy Drafted'), ('policy.discarded', 'Policy Discarded'), ('policy.simulated', 'Policy Simulated'), ('policy.published', 'Policy Published'), ('budget.set', 'Budget Set'), ('budget.ended', 'Budget Ended'), ('grant.given', 'Grant Given'), ('grant.extended', 'Grant Extended'), ('grant.revoked', 'Grant Revoked'), ('delegation.given', 'Delegation Given'), ('delegation.revoked', 'Delegation Revoked'), ('consent.requested', 'Consent Requested'), ('consent.approved', 'Consent Approved'), ('consent.denied', 'Consent Denied'), ('consent.revoked', 'Consent Revoked'), ('consent.expired', 'Consent Expired'), ('consent.used', 'Consent Used'), ('grant.requested', 'Grant Requested'), ('grant.declined', 'Grant Declined'), ('tenant.created', 'Tenant Created'), ('membership.given', 'Membership Given'), ('membership.ended', 'Membership Ended'), ('permission.given', 'Permission Given'), ('permission.taken', 'Permission Taken'), ('person.invited', 'Person Invited'), ('person.password_set', 'Person Password Set'), ('person.factor_added', 'Person Factor Added'), ('person.factor_removed', 'Person Factor Removed'), ('person.account_linked', 'Person Account Linked'), ('person.account_unlinked', 'Person Account Unlinked'), ('agent.created', 'Agent Created'), ('agent.disabled', 'Agent Disabled'), ('agent.enabled', 'Agent Enabled'), ('key.created', 'Key Created'), ('key.rotated', 'Key Rotated'), ('key.revoked', 'Key Revoked'), ('issuer.trusted', 'Issuer Trusted'), ('issuer.changed', 'Issuer Changed'), ('issuer.distrusted', 'Issuer Distrusted'), ('identity.mapped', 'Identity Mapped'), ('identity.unmapped', 'Identity Unmapped'), ('notification.set', 'Notification Set'), ('notification.ended', 'Notification Ended'), ('master_keys.rotated', 'Master Keys Rotated'), ('log_key.added', 'Log Key Added'), ('log_key.retired', 'Log Key Retired'), ('configuration.applied', 'Configuration Applied'), ('configuration.exported', 'Configuration Exported'), ('sink.made', 'Sink Made'), ('sink.paused', 'Sink Paused'), ('sink.resumed', 'Sink Resumed'), ('sink.refused', 'Sink Refused'), ('sink.rotated', 'Sink Rotated'), ('sink.tested', 'Sink Tested'), ('sink.ended', 'Sink Ended'), ('anchor.refused', 'Anchor Refused'), ('anchor.agreed', 'Anchor Agreed'), ('snapshot.read', 'Snapshot Read'), ('erasure.asked', 'Erasure Asked'), ('subject.erased', 'Subject Erased'), ('words.erased', 'Words Erased'), ('erasure.finished', 'Erasure Finished'), ('retention.set', 'Retention Set'), ('retention.applied', 'Retention Applied'), ('export.made', 'Export Made'), ('export.finished', 'Export Finished'), ('export.failed', 'Export Failed'), ('export.cancelled', 'Export Cancelled'), ('export.read', 'Export Read'), ('export.expired', 'Export Expired'), ('verification.asked', 'Verification Asked'), ('verification.passed', 'Verification Passed'), ('verification.failed', 'Verification Failed'), ('verification.closed', 'Verification Closed')])
                ),
            ],
        )
    ]
