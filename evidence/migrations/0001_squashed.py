"""Evidence's tables, as one migration: what twenty-eight made step by step before the first release."""

import django.db.models.deletion
import kernel.ids
import uuid
from django.db import migrations, models


# What a search reads of a tag stands side by side in the index, not a page of the table for each block.
POSTING_WITH_PLACES = """
ALTER TABLE evidence_posting DROP CONSTRAINT evidence_posting_pkey;
ALTER TABLE evidence_posting ADD CONSTRAINT evidence_posting_pkey PRIMARY KEY (tenant_id, tag, block) INCLUDE (places)
"""


def put_places_into_the_index(_apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTING_WITH_PLACES)


class Migration(migrations.Migration):

    replaces = [
        ('evidence', '0001_initial'),
        ('evidence', '0002_kinds_of_grants'),
        ('evidence', '0003_kinds_of_boxes'),
        ('evidence', '0004_protocol'),
        ('evidence', '0005_evidence'),
        ('evidence', '0006_capsules'),
        ('evidence', '0007_postings_within_their_index'),
        ('evidence', '0008_oldest_values'),
        ('evidence', '0009_closed_findings'),
        ('evidence', '0010_master_keys'),
        ('evidence', '0011_tries_of_verifications'),
        ('evidence', '0012_facts_of_forgetting'),
        ('evidence', '0013_facts_of_finished_erasures'),
        ('evidence', '0014_facts_of_erased_words'),
        ('evidence', '0015_facts_of_models'),
        ('evidence', '0016_facts_of_prices'),
        ('evidence', '0017_facts_of_meters'),
        ('evidence', '0018_facts_of_model_prefixes'),
        ('evidence', '0019_agent_runs'),
        ('evidence', '0020_facts_of_playgrounds'),
        ('evidence', '0021_facts_of_connections'),
        ('evidence', '0002_entered_clients'),
        ('evidence', '0003_assertion_rules'),
        ('evidence', '0004_connection_rules'),
        ('evidence', '0005_server_accounts'),
        ('evidence', '0006_imports'),
        ('evidence', '0007_agent_making_index'),
        ('evidence', '0008_log_archives'),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='Anchor',
            fields=[
                ('name', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('witness', 'Witness'), ('file', 'File'), ('git', 'Git')], max_length=8)),
                ('size', models.BigIntegerField(default=0)),
                ('anchored_at', models.DateTimeField(null=True)),
                ('next_attempt_at', models.DateTimeField()),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('refused_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='TenantKey',
            fields=[
                ('tenant_id', models.UUIDField(primary_key=True, serialize=False)),
                ('key_id', models.CharField(max_length=64)),
                ('wrapped_key', models.BinaryField()),
                ('created_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SubjectKey',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('subject', models.CharField(max_length=80)),
                ('wrapped_key', models.BinaryField()),
                ('created_at', models.DateTimeField()),
                ('destroyed_at', models.DateTimeField(null=True)),
                ('tenant_key', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evidence.tenantkey')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('destroyed_at', None)), fields=('tenant_id', 'subject'), name='subject_key_one_in_use'), models.CheckConstraint(condition=models.Q(models.Q(('destroyed_at', None), models.Q(('subject', ''), _negated=True), models.Q(('wrapped_key', b''), _negated=True)), models.Q(('destroyed_at__isnull', False), ('subject', ''), ('wrapped_key', b'')), _connector='OR'), name='subject_key_destroyed_as_a_whole')],
            },
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('state', models.CharField(choices=[('asked', 'Asked'), ('erasing', 'Erasing'), ('done', 'Done')], default='asked', max_length=8)),
                ('subject', models.CharField(blank=True, max_length=80)),
                ('reason', models.CharField(max_length=500)),
                ('asked_by', models.CharField(max_length=64)),
                ('asked_at', models.DateTimeField()),
                ('erased_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('counts', models.JSONField(default=dict)),
                ('key', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evidence.subjectkey')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant_id', '-id'], name='erasure_newest')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('subject', ''), _negated=True), fields=('tenant_id', 'subject'), name='erasure_one_at_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('state', 'done'), ('subject', '')), models.Q(models.Q(('state', 'done'), _negated=True), models.Q(('subject', ''), _negated=True), ('finished_at', None)), _connector='OR'), name='erasure_forgets_its_subject')],
            },
        ),
        migrations.CreateModel(
            name='Fact',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('kind', models.CharField(choices=[('invocation.began', 'Invocation Began'), ('invocation.ended', 'Invocation Ended'), ('dry_run.began', 'Dry Run Began'), ('dry_run.ended', 'Dry Run Ended'), ('invocation.preflighted', 'Invocation Preflighted'), ('invocation.held', 'Invocation Held'), ('invocation.resumed', 'Invocation Resumed'), ('invocation.cancel_asked', 'Invocation Cancel Asked'), ('invocation.replayed', 'Invocation Replayed'), ('invocation.retried', 'Invocation Retried'), ('invocation.resolved', 'Invocation Resolved'), ('invocation.rerun', 'Invocation Rerun'), ('replay.began', 'Replay Began'), ('replay.ended', 'Replay Ended'), ('request.rejected', 'Request Rejected'), ('invocation.segment', 'Invocation Segment'), ('callback.made', 'Callback Made'), ('callback.rotated', 'Callback Rotated'), ('callback.disabled', 'Callback Disabled'), ('callback.delivered', 'Callback Delivered'), ('callback.failed', 'Callback Failed'), ('callback.redelivered', 'Callback Redelivered'), ('chain.began', 'Chain Began'), ('chain.ended', 'Chain Ended'), ('chain.refused', 'Chain Refused'), ('chain.cancel_asked', 'Chain Cancel Asked'), ('agent_run.began', 'Agent Run Began'), ('agent_run.ended', 'Agent Run Ended'), ('agent_run.refused', 'Agent Run Refused'), ('agent_run.cancel_asked', 'Agent Run Cancel Asked'), ('playground.created', 'Playground Created'), ('playground_message.sent', 'Playground Message Sent'), ('tool.registered', 'Tool Registered'), ('tool.reviewed', 'Tool Reviewed'), ('tool.enabled', 'Tool Enabled'), ('tool.paused', 'Tool Paused'), ('tool.deprecated', 'Tool Deprecated'), ('tool.shared', 'Tool Shared'), ('tool.unshared', 'Tool Unshared'), ('model_provider.connected', 'Model Provider Connected'), ('model_provider.changed', 'Model Provider Changed'), ('model_provider.paused', 'Model Provider Paused'), ('model_provider.enabled', 'Model Provider Enabled'), ('model_provider.removed', 'Model Provider Removed'), ('model_prefix.set', 'Model Prefix Set'), ('model.connected', 'Model Connected'), ('model.changed', 'Model Changed'), ('model.removed', 'Model Removed'), ('model_prices.set', 'Model Prices Set'), ('model_meter.differed', 'Model Meter Differed'), ('version.staged', 'Version Staged'), ('version.yanked', 'Version Yanked'), ('version.trusted', 'Version Trusted'), ('version.distrusted', 'Version Distrusted'), ('dependencies.locked', 'Dependencies Locked'), ('dependencies.unresolved', 'Dependencies Unresolved'), ('dependencies.queued', 'Dependencies Queued'), ('dependencies.started', 'Dependencies Started'), ('dependencies.built', 'Dependencies Built'), ('dependencies.failed', 'Dependencies Failed'), ('dependencies.retried', 'Dependencies Retried'), ('dependencies.released', 'Dependencies Released'), ('installation.changed', 'Installation Changed'), ('installation.moved', 'Installation Moved'), ('secret.set', 'Secret Set'), ('secret.removed', 'Secret Removed'), ('capsule.uploaded', 'Capsule Uploaded'), ('capsule.read', 'Capsule Read'), ('publisher_key.added', 'Publisher Key Added'), ('publisher_key.revoked', 'Publisher Key Revoked'), ('publishing.changed', 'Publishing Changed'), ('import.read', 'Import Read'), ('import.submitted', 'Import Submitted'), ('import.effect_chosen', 'Import Effect Chosen'), ('import.removed', 'Import Removed'), ('file.stored', 'File Stored'), ('file.read', 'File Read'), ('file.removed', 'File Removed'), ('artifact.read', 'Artifact Read'), ('artifact.removed', 'Artifact Removed'), ('halt.thrown', 'Halt Thrown'), ('halt.lifted', 'Halt Lifted'), ('policy.drafted', 'Policy Drafted'), ('policy.discarded', 'Policy Discarded'), ('policy.simulated', 'Policy Simulated'), ('policy.published', 'Policy Published'), ('budget.set', 'Budget Set'), ('budget.ended', 'Budget Ended'), ('grant.given', 'Grant Given'), ('grant.extended', 'Grant Extended'), ('grant.revoked', 'Grant Revoked'), ('delegation.given', 'Delegation Given'), ('delegation.revoked', 'Delegation Revoked'), ('consent.requested', 'Consent Requested'), ('consent.approved', 'Consent Approved'), ('consent.denied', 'Consent Denied'), ('consent.revoked', 'Consent Revoked'), ('consent.expired', 'Consent Expired'), ('consent.used', 'Consent Used'), ('grant.requested', 'Grant Requested'), ('grant.declined', 'Grant Declined'), ('tenant.created', 'Tenant Created'), ('membership.given', 'Membership Given'), ('membership.ended', 'Membership Ended'), ('permission.given', 'Permission Given'), ('permission.taken', 'Permission Taken'), ('person.invited', 'Person Invited'), ('person.password_set', 'Person Password Set'), ('person.factor_added', 'Person Factor Added'), ('person.factor_removed', 'Person Factor Removed'), ('person.account_linked', 'Person Account Linked'), ('person.account_unlinked', 'Person Account Unlinked'), ('agent.created', 'Agent Created'), ('agent.disabled', 'Agent Disabled'), ('agent.enabled', 'Agent Enabled'), ('key.created', 'Key Created'), ('key.rotated', 'Key Rotated'), ('key.revoked', 'Key Revoked'), ('client.met', 'Client Met'), ('client.entered', 'Client Entered'), ('client.removed', 'Client Removed'), ('connection.opened', 'Connection Opened'), ('connection.stepped_up', 'Connection Stepped Up'), ('connection.refused', 'Connection Refused'), ('connection.reuse_detected', 'Connection Reuse Detected'), ('connection.ended', 'Connection Ended'), ('account_server.met', 'Account Server Met'), ('account_server.entered', 'Account Server Entered'), ('server_account.requested', 'Server Account Requested'), ('server_account.connected', 'Server Account Connected'), ('server_account.allowed', 'Server Account Allowed'), ('server_account.refreshed', 'Server Account Refreshed'), ('server_account.ended', 'Server Account Ended'), ('issuer.trusted', 'Issuer Trusted'), ('issuer.changed', 'Issuer Changed'), ('issuer.distrusted', 'Issuer Distrusted'), ('connection_rule.set', 'Connection Rule Set'), ('assertion_rule.set', 'Assertion Rule Set'), ('assertion_rule.ended', 'Assertion Rule Ended'), ('identity.mapped', 'Identity Mapped'), ('identity.unmapped', 'Identity Unmapped'), ('notification.set', 'Notification Set'), ('notification.ended', 'Notification Ended'), ('master_keys.rotated', 'Master Keys Rotated'), ('log_key.added', 'Log Key Added'), ('log_key.retired', 'Log Key Retired'), ('log.archived', 'Log Archived'), ('configuration.applied', 'Configuration Applied'), ('configuration.exported', 'Configuration Exported'), ('sink.made', 'Sink Made'), ('sink.paused', 'Sink Paused'), ('sink.resumed', 'Sink Resumed'), ('sink.refused', 'Sink Refused'), ('sink.rotated', 'Sink Rotated'), ('sink.tested', 'Sink Tested'), ('sink.ended', 'Sink Ended'), ('anchor.refused', 'Anchor Refused'), ('anchor.agreed', 'Anchor Agreed'), ('snapshot.read', 'Snapshot Read'), ('erasure.asked', 'Erasure Asked'), ('subject.erased', 'Subject Erased'), ('words.erased', 'Words Erased'), ('erasure.finished', 'Erasure Finished'), ('retention.set', 'Retention Set'), ('retention.applied', 'Retention Applied'), ('export.made', 'Export Made'), ('export.finished', 'Export Finished'), ('export.failed', 'Export Failed'), ('export.cancelled', 'Export Cancelled'), ('export.read', 'Export Read'), ('export.expired', 'Export Expired'), ('verification.asked', 'Verification Asked'), ('verification.passed', 'Verification Passed'), ('verification.failed', 'Verification Failed'), ('verification.closed', 'Verification Closed')], max_length=40)),
                ('subject', models.CharField(max_length=200)),
                ('invocation_id', models.UUIDField(null=True)),
                ('occurred_at', models.DateTimeField()),
                ('actor_kind', models.CharField(max_length=8)),
                ('actor_id', models.CharField(max_length=64)),
                ('tool', models.CharField(blank=True, max_length=128)),
                ('outcome', models.CharField(blank=True, max_length=16)),
                ('reason', models.CharField(blank=True, max_length=64)),
                ('trace_id', models.CharField(blank=True, max_length=32)),
                ('leaf', models.BinaryField()),
                ('leaf_hash', models.BinaryField(max_length=32)),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant_id', '-id'], name='fact_newest'), models.Index(fields=['invocation_id', 'id'], name='fact_of_invocation'), models.Index(condition=models.Q(('kind__in', ['retention.applied', 'erasure.asked', 'erasure.finished', 'words.erased'])), fields=['tenant_id'], name='fact_of_forgetting'), models.Index(condition=models.Q(('kind__in', ['agent.created', 'issuer.trusted', 'issuer.changed', 'identity.mapped', 'assertion_rule.set'])), fields=['tenant_id', 'kind'], name='fact_of_agent_making')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('kind__in', ['invocation.began', 'dry_run.began', 'invocation.ended', 'dry_run.ended'])), fields=('invocation_id', 'kind'), name='fact_one_begin_one_end'), models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['invocation.began', 'dry_run.began', 'invocation.ended', 'dry_run.ended']), _negated=True), ('invocation_id__isnull', False), _connector='OR'), name='fact_pair_names_its_invocation')],
            },
        ),
        migrations.CreateModel(
            name='IndexBlock',
            fields=[
                ('pk', models.CompositePrimaryKey('tenant_id', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('number', models.IntegerField()),
                ('first_id', models.UUIDField()),
                ('last_id', models.UUIDField()),
            ],
        ),
        migrations.CreateModel(
            name='Indexed',
            fields=[
                ('tenant_id', models.UUIDField(primary_key=True, serialize=False)),
                ('size', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Log',
            fields=[
                ('tenant_id', models.UUIDField(primary_key=True, serialize=False)),
                ('origin', models.CharField(max_length=255, unique=True)),
                ('size', models.BigIntegerField(default=0)),
                ('frontier', models.BinaryField(default=bytes)),
                ('signed_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='LogKey',
            fields=[
                ('name', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('public', models.BinaryField(max_length=32)),
                ('clock', models.BinaryField(max_length=32)),
                ('added_at', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='MasterKey',
            fields=[
                ('key_id', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('check_value', models.CharField(max_length=71)),
                ('added_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Posting',
            fields=[
                ('pk', models.CompositePrimaryKey('tenant_id', 'tag', 'block', blank=True, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('tag', models.BinaryField()),
                ('block', models.IntegerField()),
                ('places', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Retention',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('name', models.CharField(max_length=16)),
                ('days', models.PositiveIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant_id', 'name'), name='retention_once_a_class')],
            },
        ),
        migrations.CreateModel(
            name='SavedSearch',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('owner', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(max_length=1000)),
                ('shared', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant_id', 'owner', 'name'), name='saved_search_each_name_once')],
            },
        ),
        migrations.CreateModel(
            name='EventSink',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('name', models.SlugField(max_length=40)),
                ('channel', models.CharField(choices=[('webhook', 'Webhook'), ('file', 'File')], max_length=8)),
                ('url', models.CharField(blank=True, max_length=500)),
                ('mode', models.CharField(choices=[('structured', 'Structured'), ('batched', 'Batched')], default='structured', max_length=10)),
                ('kinds', models.JSONField(default=list)),
                ('max_mb', models.PositiveIntegerField(default=64)),
                ('state', models.CharField(choices=[('active', 'Active'), ('paused', 'Paused'), ('ended', 'Ended')], default='active', max_length=8)),
                ('cursor', models.BigIntegerField(default=0)),
                ('sent', models.BigIntegerField(default=0)),
                ('sent_at', models.DateTimeField(null=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField()),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('failed_at', models.DateTimeField(null=True)),
                ('created_by', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'ended'), _negated=True), fields=('tenant_id', 'name'), name='event_sink_name_once_in_use')],
            },
        ),
        migrations.CreateModel(
            name='SinkSecret',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('key_id', models.CharField(max_length=64)),
                ('wrapped_key', models.BinaryField()),
                ('ends_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant_id', models.UUIDField()),
                ('sink', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='evidence.eventsink')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ends_at', None)), fields=('sink',), name='sink_secret_one_without_end')],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('invocation_id', models.UUIDField()),
                ('kind', models.CharField(choices=[('input', 'Input'), ('output', 'Output'), ('error', 'Error'), ('logs', 'Logs'), ('segment', 'Segment'), ('replay', 'Replay'), ('words', 'Words'), ('live', 'Live')], max_length=8)),
                ('number', models.PositiveIntegerField(default=0)),
                ('alg', models.CharField(max_length=16)),
                ('commitment', models.CharField(max_length=71)),
                ('size', models.PositiveIntegerField()),
                ('key_id', models.CharField(blank=True, max_length=64)),
                ('wrapped_key', models.BinaryField()),
                ('nonce', models.BinaryField(max_length=12)),
                ('ciphertext', models.BinaryField()),
                ('created_at', models.DateTimeField()),
                ('subject_key', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evidence.subjectkey')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant_id', 'kind', 'created_at'], name='snapshot_oldest')],
                'constraints': [models.UniqueConstraint(fields=('invocation_id', 'kind', 'number'), name='snapshot_one_of_a_kind'), models.CheckConstraint(condition=models.Q(models.Q(('subject_key', None), models.Q(('key_id', ''), _negated=True)), models.Q(('key_id', ''), ('subject_key__isnull', False)), _connector='OR'), name='snapshot_under_one_key')],
            },
        ),
        migrations.CreateModel(
            name='Tile',
            fields=[
                ('pk', models.CompositePrimaryKey('tenant_id', 'level', 'n', blank=True, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('level', models.SmallIntegerField()),
                ('n', models.BigIntegerField()),
                ('hashes', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Verification',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('asked_by', models.CharField(blank=True, max_length=64)),
                ('start', models.BigIntegerField(default=0)),
                ('stop', models.BigIntegerField(null=True)),
                ('position', models.BigIntegerField(default=0)),
                ('frontier', models.BinaryField(default=bytes)),
                ('last_fact_id', models.UUIDField(null=True)),
                ('checkpoints', models.BigIntegerField(default=0)),
                ('state', models.CharField(choices=[('running', 'Running'), ('passed', 'Passed'), ('failed', 'Failed')], default='running', max_length=8)),
                ('findings', models.JSONField(default=list)),
                ('found', models.BigIntegerField(default=0)),
                ('first_bad', models.BigIntegerField(null=True)),
                ('found_at', models.DateTimeField(null=True)),
                ('checker', models.CharField(blank=True, max_length=80)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('stopped_by', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(null=True)),
                ('begun_at', models.DateTimeField()),
                ('checked_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='closes', to='evidence.verification')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant_id', '-id'], name='verification_newest'), models.Index(condition=models.Q(('closed_by', None), ('found__gt', 0)), fields=['tenant_id'], name='verification_bad'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='verification_to_do')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('asked_by', ''), ('state', 'running')), fields=('tenant_id',), name='verification_one_continuous_of_a_log')],
            },
        ),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant_id', models.UUIDField()),
                ('size', models.BigIntegerField()),
                ('root', models.BinaryField(max_length=32)),
                ('note', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('global_index', models.BigIntegerField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('global_index', None), models.Q(('tenant_id', uuid.UUID('00000000-0000-0000-0000-000000000001')), _negated=True)), fields=['id'], name='checkpoint_not_yet_global')],
                'constraints': [models.UniqueConstraint(fields=('tenant_id', 'size'), name='checkpoint_each_size_once'), models.UniqueConstraint(condition=models.Q(('global_index__isnull', False)), fields=('global_index',), name='checkpoint_each_global_index_once')],
            },
        ),
        migrations.CreateModel(
            name='ExportJob',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant_id', models.UUIDField()),
                ('actor_kind', models.CharField(max_length=8)),
                ('actor_id', models.CharField(max_length=64)),
                ('query', models.CharField(blank=True, max_length=1000)),
                ('start', models.BigIntegerField()),
                ('stop', models.BigIntegerField()),
                ('format', models.CharField(choices=[('jsonl', 'Jsonl'), ('csv', 'Csv'), ('bundle', 'Bundle')], max_length=8)),
                ('opens', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('expired', 'Expired')], default='queued', max_length=16)),
                ('position', models.BigIntegerField()),
                ('rows', models.BigIntegerField(default=0)),
                ('size', models.BigIntegerField(default=0)),
                ('chunks', models.PositiveIntegerField(default=0)),
                ('progress', models.JSONField(default=dict)),
                ('digest', models.CharField(blank=True, max_length=71)),
                ('problem', models.CharField(blank=True, max_length=300)),
                ('key_id', models.CharField(blank=True, max_length=64)),
                ('wrapped_key', models.BinaryField(default=bytes)),
                ('exporter', models.CharField(blank=True, max_length=80)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant_id', '-id'], name='export_newest'), models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['lease_until'], name='export_to_do')],
                'constraints': [models.CheckConstraint(condition=models.Q(('position__gte', models.F('start')), ('start__gte', 0), ('stop__gte', models.F('start')), ('position__lte', models.F('stop'))), name='export_position_within_its_range')],
            },
        ),
        migrations.CreateModel(
            name='ExportChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('offset', models.BigIntegerField()),
                ('size', models.PositiveIntegerField()),
                ('nonce', models.BinaryField(max_length=12)),
                ('ciphertext', models.BinaryField()),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pieces', to='evidence.exportjob')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('job', 'number'), name='export_chunk_each_number_once')],
            },
        ),
        migrations.CreateModel(
            name='Pending',
            fields=[
                ('fact', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='pending', serialize=False, to='evidence.fact')),
                ('tenant_id', models.UUIDField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='Seal',
            fields=[
                ('fact', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='seal', serialize=False, to='evidence.fact')),
                ('tenant_id', models.UUIDField()),
                ('leaf_index', models.BigIntegerField()),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant_id', 'leaf_index'), name='seal_each_index_once')],
            },
        ),
        migrations.RunPython(put_places_into_the_index, migrations.RunPython.noop),
    ]
