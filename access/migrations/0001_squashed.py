"""Access's tables, as one migration: what six made step by step before the first release."""

import django.db.models.deletion
import kernel.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('access', '0001_initial'),
        ('access', '0002_governance'),
        ('access', '0003_boxes'),
        ('access', '0004_protocol'),
        ('access', '0005_evidence'),
        ('access', '0006_capsules'),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('name', models.CharField(max_length=80)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'permissions': [('tools.view', 'See the catalogue'), ('tools.submit', 'Submit tool versions'), ('tools.review', 'Approve or refuse submitted versions'), ('tools.operate', 'Enable, pause, stage, yank and deprecate tools'), ('tools.install', 'Install and configure tools for the tenant'), ('tools.trust', 'Mark versions as trusted to run without a sandbox'), ('publishers.manage', 'Manage the keys whose signatures on packages are accepted'), ('secrets.manage', 'Set and remove secrets'), ('files.manage', 'Store, read and remove the files that tools may use'), ('halts.throw', 'Throw and lift kill switches'), ('agents.view', 'See agents and their keys'), ('agents.manage', 'Create agents and keys'), ('members.view', 'See people and their roles'), ('members.manage', 'Invite people and change their roles'), ('issuers.manage', 'Trust identity providers'), ('notifications.manage', 'Choose where notifications are sent'), ('grants.view', 'See grants'), ('grants.give', 'Give and revoke grants'), ('grants.request', 'Request a grant on behalf of an agent'), ('consents.view', 'See consents'), ('consents.decide', 'Approve, deny and revoke consents'), ('budgets.view', 'See budgets'), ('budgets.manage', 'Set and end budgets'), ('policies.view', 'See policies'), ('policies.draft', 'Draft and simulate policies'), ('policies.publish', 'Publish policies that somebody else drafted'), ('configuration.apply', "Apply and export the tenant's configuration"), ('invocations.view', 'See calls'), ('invocations.cancel', 'End calls that are waiting or running'), ('invocations.resolve', 'Resolve calls with an unknown outcome'), ('invocations.replay', 'Replay calls to compare, with a reason'), ('sinks.manage', 'Choose where events of the tenant are sent'), ('evidence.view', 'Browse evidence'), ('evidence.reveal', 'Reveal stored values, with a reason'), ('evidence.erase', "Erase a person's data"), ('evidence.retain', 'Set how long values are kept')],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='access.tenant')),
            ],
            options={
                'permissions': [('agents.manage', 'See it, disable and enable it, create and revoke its keys')],
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'name'), name='agent_name_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('channel', models.CharField(choices=[('email', 'Email'), ('webhook', 'Webhook')], max_length=8)),
                ('target', models.CharField(max_length=500)),
                ('events', models.JSONField(default=list)),
                ('secret_key_id', models.CharField(blank=True, max_length=64)),
                ('secret', models.BinaryField(blank=True, default=b'')),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notifications', to='access.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tools', models.CharField(max_length=500)),
                ('capabilities', models.JSONField(blank=True, null=True)),
                ('reason', models.CharField(max_length=500)),
                ('given_by', models.CharField(max_length=64)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_by', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conditions', models.JSONField(default=list)),
                ('scopes', models.JSONField(blank=True, null=True)),
                ('source', models.CharField(default='console', max_length=80)),
                ('may_delegate', models.PositiveSmallIntegerField(default=0)),
                ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='access.agent')),
                ('delegated_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='delegations', to='access.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='access.tenant')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('revoked_at', None)), fields=['tenant', 'agent'], name='grant_in_force'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('revoked_at', None), ('revoked_by', '')), models.Q(('revoked_at__isnull', False), models.Q(('revoked_by', ''), _negated=True)), _connector='OR'), name='grant_revoked_at_and_by_together'),
                    models.CheckConstraint(condition=models.Q(('may_delegate', 0), models.Q(('agent__isnull', False), ('may_delegate__lte', 3)), _connector='OR'), name='grant_handed_on_by_one_agent_and_not_too_often'),
                    models.CheckConstraint(condition=models.Q(('delegated_from', None), models.Q(('agent__isnull', False), ('expires_at__isnull', False)), _connector='OR'), name='grant_handed_on_to_one_agent_for_a_time'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('scope', models.CharField(choices=[('tenant', 'Tenant'), ('agent', 'Agent'), ('tool', 'Tool'), ('grant', 'Grant'), ('manifest', 'Manifest')], max_length=8)),
                ('tool', models.CharField(blank=True, max_length=128)),
                ('dimension', models.CharField(choices=[('calls', 'Calls'), ('bytes_in', 'Bytes In'), ('bytes_out', 'Bytes Out'), ('cpu_ms', 'Cpu Ms'), ('money', 'Money'), ('concurrency', 'Concurrency'), ('rate', 'Rate')], max_length=12)),
                ('amount', models.BigIntegerField()),
                ('window_s', models.PositiveIntegerField()),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('set_by', models.CharField(max_length=64)),
                ('set_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('ended_by', models.CharField(blank=True, max_length=64)),
                ('agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='budgets', to='access.agent')),
                ('grant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='budgets', to='access.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='budgets', to='access.tenant')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('ended_at', None)), fields=['tenant', 'scope'], name='budget_in_force'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='budget_amount_is_not_negative'),
                    models.CheckConstraint(condition=models.Q(models.Q(('dimension', 'concurrency'), ('window_s', 0)), models.Q(models.Q(('dimension', 'concurrency'), _negated=True), ('window_s__gt', 0)), _connector='OR'), name='budget_window_unless_concurrency'),
                    models.CheckConstraint(condition=models.Q(models.Q(('agent', None), ('grant', None), ('scope', 'tenant'), ('tool', '')), models.Q(('agent__isnull', False), ('grant', None), ('scope', 'agent'), ('tool', '')), models.Q(('agent', None), ('grant', None), ('scope__in', ['tool', 'manifest']), models.Q(('tool', ''), _negated=True)), models.Q(('agent', None), ('grant__isnull', False), ('scope', 'grant'), ('tool', '')), _connector='OR'), name='budget_names_what_its_scope_says'),
                ],
            },
        ),
        migrations.CreateModel(
            name='BudgetWindow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.BigIntegerField()),
                ('used', models.BigIntegerField(default=0)),
                ('reserved', models.BigIntegerField(default=0)),
                ('raised', models.BigIntegerField(default=0)),
                ('budget', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='windows', to='access.budget')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('budget', 'number'), name='budget_window_once'),
                    models.CheckConstraint(condition=models.Q(('raised__gte', 0), ('reserved__gte', 0), ('used__gte', 0)), name='budget_window_never_below_zero'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('event', models.CharField(max_length=64)),
                ('subject', models.CharField(max_length=128)),
                ('body', models.JSONField()),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('notification', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='access.notification')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('next_attempt_at__isnull', False)), fields=['next_attempt_at'], name='delivery_due'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Reservation',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('invocation_id', models.UUIDField()),
                ('amount', models.BigIntegerField()),
                ('settled', models.BigIntegerField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('window', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reservations', to='access.budgetwindow')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant')),
            ],
            options={
                'indexes': [
                    models.Index(models.F('created_at'), condition=models.Q(('settled', None)), name='reservation_open'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('invocation_id', 'window'), name='reservation_once'),
                    models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='reservation_is_not_negative'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('in_force', 'In Force'), ('superseded', 'Superseded'), ('discarded', 'Discarded')], default='draft', max_length=12)),
                ('document', models.JSONField()),
                ('digest', models.CharField(max_length=71)),
                ('note', models.CharField(blank=True, max_length=1000)),
                ('drafted_by', models.CharField(max_length=64)),
                ('drafted_at', models.DateTimeField(auto_now_add=True)),
                ('published_by', models.CharField(blank=True, max_length=64)),
                ('published_at', models.DateTimeField(blank=True, null=True)),
                ('simulation', models.JSONField(blank=True, null=True)),
                ('tenant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='access.tenant')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'number'), name='policy_number_once_in_a_tenant'),
                    models.UniqueConstraint(condition=models.Q(('tenant', None)), fields=('number',), name='policy_number_once_in_the_hub'),
                    models.UniqueConstraint(condition=models.Q(('state', 'in_force')), fields=('tenant',), name='policy_in_force_once'),
                    models.UniqueConstraint(condition=models.Q(('state', 'in_force'), ('tenant', None)), fields=('state',), name='hub_policy_in_force_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('published_at', None), ('published_by', '')), models.Q(('published_at__isnull', False), models.Q(('published_by', ''), _negated=True)), _connector='OR'), name='policy_published_at_and_by_together'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('operator', 'Operator'), ('reviewer', 'Reviewer'), ('auditor', 'Auditor'), ('developer', 'Developer')], max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='access.tenant')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'user', 'role'), name='membership_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Halt',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('reach', models.CharField(choices=[('hub', 'Hub'), ('tenant', 'Tenant'), ('agent', 'Agent'), ('tool', 'Tool'), ('version', 'Version')], max_length=8)),
                ('target', models.CharField(blank=True, max_length=128)),
                ('reason', models.CharField(max_length=500)),
                ('thrown_by', models.CharField(max_length=64)),
                ('thrown_at', models.DateTimeField(auto_now_add=True)),
                ('lifted_by', models.CharField(blank=True, max_length=64)),
                ('lifted_at', models.DateTimeField(blank=True, null=True)),
                ('tenant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='halts', to='access.tenant')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('lifted_at', None)), fields=('tenant', 'reach', 'target'), name='halt_thrown_once'),
                    models.UniqueConstraint(condition=models.Q(('lifted_at', None), ('tenant', None)), fields=('reach',), name='halt_of_the_hub_thrown_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('reach', 'hub'), ('target', ''), ('tenant', None)), models.Q(('reach', 'tenant'), ('target', ''), ('tenant__isnull', False)), models.Q(('reach__in', ['agent', 'tool', 'version']), ('tenant__isnull', False), models.Q(('target', ''), _negated=True)), _connector='OR'), name='halt_names_what_its_reach_says'),
                    models.CheckConstraint(condition=models.Q(models.Q(('lifted_at', None), ('lifted_by', '')), models.Q(('lifted_at__isnull', False), models.Q(('lifted_by', ''), _negated=True)), _connector='OR'), name='halt_lifted_at_and_by_together'),
                ],
            },
        ),
        migrations.CreateModel(
            name='GrantRequest',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tools', models.CharField(max_length=500)),
                ('capabilities', models.JSONField(blank=True, null=True)),
                ('scopes', models.JSONField(blank=True, null=True)),
                ('conditions', models.JSONField(default=list)),
                ('purpose', models.CharField(max_length=500)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('granted', 'Granted'), ('declined', 'Declined')], default='waiting', max_length=8)),
                ('requested_by', models.CharField(max_length=64)),
                ('decided_by', models.CharField(blank=True, max_length=64)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('decision_reason', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grant_requests', to='access.agent')),
                ('grant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answers', to='access.grant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grant_requests', to='access.tenant')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['tenant', 'state', '-id'], name='grant_request_by_state'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('state', 'waiting')), fields=('agent', 'tools'), name='grant_request_waits_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('decided_at', None), ('decided_by', ''), ('state', 'waiting')), models.Q(models.Q(('state', 'waiting'), _negated=True), ('decided_at__isnull', False), models.Q(('decided_by', ''), _negated=True)), _connector='OR'), name='grant_request_decision_has_a_decider'),
                    models.CheckConstraint(condition=models.Q(models.Q(('grant__isnull', False), ('state', 'granted')), models.Q(models.Q(('state', 'granted'), _negated=True), ('grant', None)), _connector='OR'), name='grant_request_granted_names_the_grant'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Consent',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tool', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('requested', 'Requested'), ('approved', 'Approved'), ('denied', 'Denied'), ('revoked', 'Revoked'), ('expired', 'Expired'), ('used', 'Used')], default='requested', max_length=16)),
                ('purpose', models.CharField(max_length=500)),
                ('validity_s', models.PositiveIntegerField()),
                ('requested_by', models.CharField(max_length=64)),
                ('decided_by', models.CharField(blank=True, max_length=64)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('decision_reason', models.CharField(blank=True, max_length=500)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('arguments_fingerprint', models.CharField(blank=True, max_length=80)),
                ('data_classes', models.JSONField(default=list)),
                ('invocation_id', models.UUIDField(blank=True, null=True)),
                ('mode', models.CharField(choices=[('once', 'Once'), ('period', 'Period'), ('standing', 'Standing')], default='period', max_length=8)),
                ('policy_hash', models.CharField(blank=True, max_length=71)),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('user_fingerprint', models.CharField(blank=True, max_length=80)),
                ('versions', models.CharField(max_length=120)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='consents', to='access.agent')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='consents', to='access.tenant')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['tenant', 'state', '-id'], name='consent_by_state'),
                    models.Index(condition=models.Q(('state', 'approved')), fields=['agent', 'tool'], name='consent_in_force'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('decided_at', None), ('decided_by', '')), models.Q(('decided_at__isnull', False), models.Q(('decided_by', ''), _negated=True)), _connector='OR'), name='consent_decided_at_and_by_together'),
                    models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['approved', 'denied', 'revoked', 'used']), _negated=True), ('decided_at__isnull', False), _connector='OR'), name='consent_decision_has_a_decider'),
                    models.CheckConstraint(condition=models.Q(models.Q(('mode', 'once'), _negated=True), models.Q(('arguments_fingerprint', ''), _negated=True), _connector='OR'), name='consent_for_once_names_the_arguments'),
                    models.UniqueConstraint(condition=models.Q(('state', 'requested')), fields=('agent', 'tool', 'versions', 'user_fingerprint', 'arguments_fingerprint'), name='consent_one_open_request'),
                ],
            },
        ),
        migrations.CreateModel(
            name='TrustedIssuer',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('issuer', models.CharField(max_length=300)),
                ('audience', models.CharField(max_length=300)),
                ('jwks_url', models.CharField(blank=True, max_length=500)),
                ('jwks', models.JSONField(blank=True, null=True)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='issuers', to='access.tenant')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'issuer'), name='trusted_issuer_once'),
                    models.UniqueConstraint(condition=models.Q(('disabled_at', None)), fields=('issuer', 'audience'), name='trusted_issuer_audience_of_one_tenant'),
                    models.CheckConstraint(condition=models.Q(('jwks', None), ('jwks_url', ''), _negated=True), name='trusted_issuer_has_keys_or_says_where_they_are'),
                ],
            },
        ),
        migrations.CreateModel(
            name='AgentIdentity',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('subject', models.CharField(max_length=300)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to='access.agent')),
                ('issuer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to='access.trustedissuer')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('issuer', 'subject'), name='agent_identity_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.UUIDField(default=kernel.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('lookup', models.CharField(max_length=8, unique=True)),
                ('digest', models.BinaryField(max_length=32)),
                ('scopes', models.JSONField(default=list)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('name', models.CharField(blank=True, max_length=80)),
                ('networks', models.JSONField(default=list)),
                ('revoked_by', models.CharField(blank=True, max_length=64)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='access.agent')),
                ('replaces', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replaced_by', to='access.apikey')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='api_key_expires_after_it_was_made'),
                ],
            },
        ),
    ]
