"""A permission: to talk with models in the playground."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("access", "0008_models_permission")]

    operations = [
        migrations.AlterModelOptions(
            name="tenant",
            options={
                "permissions": [
                    ("tools.view", "See the catalogue"),
                    ("tools.submit", "Submit tool versions"),
                    ("tools.review", "Approve or refuse submitted versions"),
                    ("tools.operate", "Enable, pause, stage, yank and deprecate tools"),
                    ("tools.install", "Install and configure tools for the tenant"),
                    ("tools.trust", "Mark versions as trusted to run without a sandbox"),
                    ("publishers.manage", "Manage the keys whose signatures on packages are accepted"),
                    ("models.manage", "Connect model providers and models, change and remove them"),
                    ("playground.use", "Talk with models in the playground"),
                    ("secrets.manage", "Set and remove secrets"),
                    ("files.manage", "Store, read and remove the files that tools may use"),
                    ("halts.throw", "Throw and lift kill switches"),
                    ("agents.view", "See agents and their keys"),
                    ("agents.manage", "Create agents and keys"),
                    ("members.view", "See people and their roles"),
                    ("members.manage", "Invite people and change their roles"),
                    ("issuers.manage", "Trust identity providers"),
                    ("notifications.manage", "Choose where notifications are sent"),
                    ("grants.view", "See grants"),
                    ("grants.give", "Give and revoke grants"),
                    ("grants.request", "Request a grant on behalf of an agent"),
                    ("consents.view", "See consents"),
                    ("consents.decide", "Approve, deny and revoke consents"),
                    ("budgets.view", "See budgets"),
                    ("budgets.manage", "Set and end budgets"),
                    ("policies.view", "See policies"),
                    ("policies.draft", "Draft and simulate policies"),
                    ("policies.publish", "Publish policies that somebody else drafted"),
                    ("configuration.apply", "Apply and export the tenant's configuration"),
                    ("invocations.view", "See calls"),
                    ("invocations.cancel", "End calls that are waiting or running"),
                    ("invocations.resolve", "Resolve calls with an unknown outcome"),
                    ("invocations.replay", "Replay calls to compare, with a reason"),
                    ("sinks.manage", "Choose where events of the tenant are sent"),
                    ("evidence.view", "Browse evidence"),
                    ("evidence.reveal", "Reveal stored values, with a reason"),
                    ("evidence.erase", "Erase a person's data"),
                    ("evidence.retain", "Set how long values are kept"),
                ],
                "default_permissions": (),
            },
        )
    ]
