"""The registry's tables, as one migration: what eleven made step by step before the first release."""

import django.db.models.deletion
import kernel.ids
from django.db import migrations, models


# No index: row level security lets none be used whose operator is not leakproof, and a tenant's tools are few.
COLUMN = """
ALTER TABLE registry_toolversion ADD COLUMN words tsvector GENERATED ALWAYS AS (
    setweight(to_tsvector('english', title_words), 'A') || setweight(to_tsvector('english', text_words), 'B')) STORED
"""
TABLE = """
CREATE VIRTUAL TABLE registry_toolwords USING fts5(version_id UNINDEXED, title, text, tokenize='porter unicode61')
"""


def make_index(_apps, schema_editor):
    schema_editor.execute(COLUMN if schema_editor.connection.vendor == "postgresql" else TABLE)


def drop_index(_apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    schema_editor.execute(
        "ALTER TABLE registry_toolversion DROP COLUMN words" if is_postgresql else "DROP TABLE registry_toolwords"
    )


class Migration(migrations.Migration):

    replaces = [
        ('registry', '0001_initial'),
        ('registry', '0002_installations'),
        ('registry', '0003_dependencies'),
        ('registry', '0004_words'),
        ('registry', '0005_capsules'),
        ('registry', '0006_models'),
        ('registry', '0007_model_prices'),
        ('registry', '0008_model_prefixes'),
        ('registry', '0009_model_circuits'),
        ('registry', '0002_remote_listings'),
        ('registry', '0003_imports'),
    ]

    initial = True

    dependencies = [
        ('access', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='PublisherKey',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('key_id', models.CharField(max_length=64)),
                ('public_key', models.CharField(max_length=500)),
                ('added_by', models.CharField(max_length=64)),
                ('added_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_by', models.CharField(blank=True, max_length=64)),
                ('revoke_reason', models.CharField(blank=True, max_length=500)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='publisher_keys', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'key_id'), name='publisher_key_once_in_a_tenant'), models.UniqueConstraint(fields=('tenant', 'name'), name='publisher_key_name_once_in_a_tenant'), models.CheckConstraint(condition=models.Q(models.Q(('revoked_at', None), ('revoked_by', '')), models.Q(('revoked_at__isnull', False), models.Q(('revoked_by', ''), _negated=True)), _connector='OR'), name='publisher_key_revoked_at_and_by_together')],
            },
        ),
        migrations.CreateModel(
            name='Capsule',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('digest', models.CharField(max_length=71)),
                ('package', models.CharField(max_length=255)),
                ('size', models.PositiveIntegerField()),
                ('content', models.BinaryField()),
                ('envelope', models.TextField(blank=True)),
                ('uploaded_by', models.CharField(max_length=64)),
                ('uploaded_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='capsules', to='access.tenant')),
                ('signed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='capsules', to='registry.publisherkey')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'digest'), name='capsule_once_in_a_tenant'), models.CheckConstraint(condition=models.Q(models.Q(('envelope', ''), ('signed_by', None)), models.Q(('signed_by__isnull', False), models.Q(('envelope', ''), _negated=True)), _connector='OR'), name='capsule_signer_and_envelope_together')],
            },
        ),
        migrations.CreateModel(
            name='PublishingRules',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('signatures_required', models.BooleanField(default=False)),
                ('changed_by', models.CharField(max_length=64)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='publishing_rules', to='access.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Secret',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('number', models.PositiveIntegerField(default=1)),
                ('key_id', models.CharField(max_length=64)),
                ('wrapped_key', models.BinaryField()),
                ('nonce', models.BinaryField()),
                ('ciphertext', models.BinaryField()),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField(auto_now=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='secrets', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='secret_name_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='ModelProvider',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=40)),
                ('kind', models.CharField(max_length=40)),
                ('address', models.CharField(blank=True, max_length=500)),
                ('secret', models.CharField(blank=True, max_length=80)),
                ('settings', models.JSONField(default=dict)),
                ('data_classes', models.JSONField(default=list)),
                ('state', models.CharField(choices=[('enabled', 'Enabled'), ('paused', 'Paused')], default='enabled', max_length=8)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('changed_by', models.CharField(max_length=64)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='model_providers', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='model_provider_name_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='ModelCircuit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=200)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('opened', models.PositiveIntegerField(default=0)),
                ('open_until', models.DateTimeField(null=True)),
                ('trying_until', models.DateTimeField(null=True)),
                ('why', models.CharField(blank=True, max_length=60)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant')),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='circuits', to='registry.modelprovider')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('provider', 'model'), name='model_circuit_once_of_a_model')],
            },
        ),
        migrations.CreateModel(
            name='ModelPrefix',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField(blank=True)),
                ('digest', models.CharField(max_length=71)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='model_prefixes', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'number'), name='model_prefix_number_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='ModelPrices',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('document', models.JSONField()),
                ('reason', models.CharField(max_length=500)),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='model_prices', to='access.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'number'), name='model_prices_number_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='Tool',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=128)),
                ('kind', models.CharField(choices=[('tool', 'Tool'), ('model', 'Model')], default='tool', max_length=8)),
                ('state', models.CharField(choices=[('registered', 'Registered'), ('enabled', 'Enabled'), ('paused', 'Paused'), ('deprecated', 'Deprecated')], default='registered', max_length=16)),
                ('state_reason', models.CharField(blank=True, max_length=500)),
                ('state_changed_at', models.DateTimeField(auto_now_add=True)),
                ('state_changed_by', models.CharField(max_length=64)),
                ('sunset_on', models.DateField(blank=True, null=True)),
                ('successor', models.CharField(blank=True, max_length=128)),
                ('shared', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='access.tenant')),
            ],
            options={
                'permissions': [('tools.review', 'Approve or refuse its submitted versions'), ('tools.operate', 'Enable, pause, stage, yank, share and deprecate it'), ('tools.install', 'Configure, pause and remove its installation'), ('tools.trust', 'Mark its versions as trusted to run without a sandbox')],
                'indexes': [models.Index(fields=['tenant', '-id'], name='tool_newest'), models.Index(condition=models.Q(('shared', True)), fields=['-id'], name='tool_shared_newest')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='tool_name_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='ToolVersion',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('version', models.CharField(max_length=64)),
                ('manifest', models.JSONField()),
                ('manifest_digest', models.CharField(max_length=71)),
                ('build_digest', models.CharField(max_length=71)),
                ('warnings', models.JSONField(default=list)),
                ('changes', models.JSONField(default=list)),
                ('review_state', models.CharField(choices=[('submitted', 'Submitted'), ('approved', 'Approved'), ('refused', 'Refused')], default='submitted', max_length=16)),
                ('submitted_by', models.CharField(max_length=64)),
                ('submitted_at', models.DateTimeField(auto_now_add=True)),
                ('yanked_at', models.DateTimeField(blank=True, null=True)),
                ('yanked_by', models.CharField(blank=True, max_length=64)),
                ('yank_reason', models.CharField(blank=True, max_length=500)),
                ('trusted_at', models.DateTimeField(blank=True, null=True)),
                ('trusted_by', models.CharField(blank=True, max_length=64)),
                ('side_effect', models.CharField(max_length=16)),
                ('safety_class', models.CharField(max_length=8)),
                ('display_name', models.CharField(blank=True, max_length=80)),
                ('tags', models.CharField(blank=True, max_length=1000)),
                ('domains', models.CharField(blank=True, max_length=40)),
                ('search', models.TextField(blank=True)),
                ('title_words', models.TextField(blank=True)),
                ('text_words', models.TextField(blank=True)),
                ('base', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.toolversion')),
                ('capsule', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='registry.capsule')),
                ('tool', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='registry.tool')),
            ],
            options={
                'indexes': [models.Index(fields=['review_state', '-id'], name='version_by_review_state')],
                'constraints': [models.UniqueConstraint(fields=('tool', 'version'), name='tool_version_once'), models.CheckConstraint(condition=models.Q(models.Q(('yanked_at', None), ('yanked_by', '')), models.Q(('yanked_at__isnull', False), models.Q(('yanked_by', ''), _negated=True)), _connector='OR'), name='version_yanked_at_and_by_together')],
            },
        ),
        migrations.AddField(
            model_name='tool',
            name='current',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.toolversion'),
        ),
        migrations.AddConstraint(
            model_name='tool',
            constraint=models.CheckConstraint(condition=models.Q(('state', 'registered'), ('current__isnull', False), _connector='OR'), name='tool_in_use_has_a_current_version'),
        ),
        migrations.CreateModel(
            name='Review',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('decision', models.CharField(choices=[('approve', 'Approve'), ('refuse', 'Refuse')], max_length=8)),
                ('note', models.CharField(blank=True, max_length=1000)),
                ('acknowledged', models.JSONField(default=list)),
                ('decided_by', models.CharField(max_length=64)),
                ('decided_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to='registry.toolversion')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'decided_by'), name='review_once_a_person')],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=128)),
                ('pin', models.CharField(blank=True, max_length=120)),
                ('state', models.CharField(choices=[('enabled', 'Enabled'), ('paused', 'Paused'), ('removed', 'Removed')], default='enabled', max_length=8)),
                ('config', models.JSONField(default=dict)),
                ('config_digest', models.CharField(blank=True, max_length=71)),
                ('hosts', models.JSONField(blank=True, null=True)),
                ('paths', models.JSONField(blank=True, null=True)),
                ('secrets', models.JSONField(default=dict)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('changed_by', models.CharField(max_length=64)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='installations', to='access.tenant')),
                ('tool', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='installations', to='registry.tool')),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='installations', to='registry.toolversion')),
                ('listing_held_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='installation_newest')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='installation_name_once_in_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='Dependencies',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('resolving', 'Resolving'), ('unresolved', 'Unresolved'), ('locked', 'Locked'), ('queued', 'Queued'), ('building', 'Building'), ('ready', 'Ready'), ('failed', 'Failed')], max_length=16)),
                ('lock', models.JSONField(default=list)),
                ('lock_digest', models.CharField(blank=True, max_length=71)),
                ('progress', models.JSONField(default=list)),
                ('failure', models.JSONField(default=dict)),
                ('size_bytes', models.BigIntegerField(blank=True, null=True)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('builder', models.CharField(blank=True, max_length=100)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('changed_at', models.DateTimeField(auto_now_add=True)),
                ('idle_since', models.DateTimeField(blank=True, null=True)),
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='dependencies', to='registry.toolversion')),
            ],
            options={
                'indexes': [models.Index(fields=['state', 'changed_at'], name='dependencies_by_state')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('lock_digest', ''), ('state__in', ['resolving', 'unresolved'])), models.Q(models.Q(('state__in', ['resolving', 'unresolved']), _negated=True), models.Q(('lock_digest', ''), _negated=True)), _connector='OR'), name='dependencies_built_from_a_lock')],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('openapi', 'OpenAPI document'), ('remote', 'MCP server elsewhere'), ('package', 'MCP server of a package')], max_length=8)),
                ('group', models.CharField(max_length=120)),
                ('state', models.CharField(choices=[('listing', 'Listing'), ('failed', 'Failed'), ('read', 'Read')], max_length=8)),
                ('source', models.JSONField(default=dict)),
                ('content', models.BinaryField(default=bytes)),
                ('digest', models.CharField(blank=True, max_length=71)),
                ('offered', models.JSONField(default=list)),
                ('wanted', models.JSONField(default=list)),
                ('drafts', models.JSONField(default=list)),
                ('unproposed', models.PositiveIntegerField(default=0)),
                ('refusals', models.JSONField(default=list)),
                ('made', models.JSONField(default=dict)),
                ('failure', models.JSONField(default=dict)),
                ('progress', models.JSONField(default=list)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('worker', models.CharField(blank=True, max_length=100)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('started_by', models.CharField(max_length=64)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='imports', to='access.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['state', 'started_at'], name='import_by_state')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'group'), name='import_group_once_in_a_tenant')],
            },
        ),
        migrations.RunPython(make_index, drop_index),
        # After the column of words, where it stands in the tables that are there.
        migrations.AddField(
            model_name='toolversion',
            name='drafted_by',
            field=models.JSONField(default=list),
        ),
    ]
