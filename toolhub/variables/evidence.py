"""Evidence: where events, metrics and checkpoints go beside the console, how logs are verified, and what an export may hold."""

from __future__ import annotations

from kernel.variables import COMMANDS, KEEPER, UPKEEP, WEB, WORKER, read_address, read_archive_url
from toolhub.variables.hub import TOOLHUB_DATA_DIR
from toolhub.variables.table import VARIABLES

_group = VARIABLES.group
_text, _number = VARIABLES.text, VARIABLES.number


def _address_or_none(text: str) -> str:
    return text and read_address(text)


_group("Events, metrics, witnesses")
TOOLHUB_EVENTS_DIR = _text(
    "TOOLHUB_EVENTS_DIR",
    allowed="a path",
    roles=(WEB, KEEPER),
    example="/var/log/toolhub-events",
    about="A folder on the keeper's host, on one that all keepers share if there are several: event sinks may write files "
    "there, a folder for each tenant. Without it sinks send to servers only.",
)
TOOLHUB_METRICS_TOKEN = _text(
    "TOOLHUB_METRICS_TOKEN",
    secret=True,
    roles=(WEB, WORKER, UPKEEP, KEEPER),
    about="What Prometheus sends as a bearer token to /metrics of the web server. Without it that address is not there. "
    "Metrics name all tenants.",
)
TOOLHUB_METRICS_BIND = VARIABLES.value(
    "TOOLHUB_METRICS_BIND",
    "",
    _address_or_none,
    "a host and a port, as 127.0.0.1:9464",
    roles=(WORKER, UPKEEP, KEEPER),
    example="127.0.0.1:9464",
    about="Where a worker, upkeep or a keeper serves its metrics. Beyond this host only with TOOLHUB_METRICS_TOKEN.",
)
TOOLHUB_WITNESSES = VARIABLES.words(
    "TOOLHUB_WITNESSES",
    roles=(KEEPER,),
    example="witness.example.org+1a2b3c4d+BDW…@https://witness.example.org",
    about="Who sees each checkpoint of the global log and signs that it continues the one before: each as key@address.",
)
TOOLHUB_ANCHOR_FILE = _text(
    "TOOLHUB_ANCHOR_FILE",
    allowed="a path",
    roles=(KEEPER,),
    example="/mnt/worm/toolhub-checkpoints.jsonl",
    about="A file outside the hub's reach (append-only, another host's disk) that gets the checkpoints of the global log.",
)
TOOLHUB_ANCHOR_GIT = _text(
    "TOOLHUB_ANCHOR_GIT",
    allowed="a path",
    roles=(KEEPER,),
    example="/srv/toolhub-checkpoints",
    about="A clone of a git repository that they are committed to.",
)
TOOLHUB_ANCHOR_GIT_PUSH = _text(
    "TOOLHUB_ANCHOR_GIT_PUSH",
    allowed="the name of a remote",
    roles=(KEEPER,),
    example="origin",
    about="The remote to push it to after each commit.",
)

_group("Verifying and exporting evidence")
TOOLHUB_KEPT_CHECKPOINT_FILE = VARIABLES.path(
    "TOOLHUB_KEPT_CHECKPOINT_FILE",
    TOOLHUB_DATA_DIR / "checkpoint.kept",
    roles=(KEEPER, COMMANDS),
    shown="checkpoint.kept in TOOLHUB_DATA_DIR",
    example="./var/checkpoint.kept",
    about="Where the keeper keeps its newest checkpoint outside the database, so that a database that was put back is found. "
    "Each keeper has its own.",
)
TOOLHUB_VERIFY_EVERY_HOURS = _number(
    "TOOLHUB_VERIFY_EVERY_HOURS",
    24,
    least=1,
    unit="hours",
    roles=(KEEPER,),
    about="The verifier follows each log, and begins again at its first leaf after so long.",
)
TOOLHUB_VERIFY_SHARE_PERCENT = _number(
    "TOOLHUB_VERIFY_SHARE_PERCENT",
    10,
    least=1,
    most=100,
    unit="percent",
    roles=(KEEPER,),
    about="How much of one CPU the verifier takes.",
)
TOOLHUB_EXPORT_DAYS = _number(
    "TOOLHUB_EXPORT_DAYS", 7, least=1, unit="days", roles=(KEEPER,), about="How long the content of an export stays."
)
TOOLHUB_EXPORT_MAX_ROWS = _number(
    "TOOLHUB_EXPORT_MAX_ROWS", 5_000_000, least=1, roles=(KEEPER,), about="How many facts an export may hold."
)
TOOLHUB_EXPORT_MAX_MB = _number(
    "TOOLHUB_EXPORT_MAX_MB", 2048, least=1, unit="MB", roles=(KEEPER,), about="How large an export may be."
)
TOOLHUB_ARCHIVE_URL = VARIABLES.value(
    "TOOLHUB_ARCHIVE_URL",
    "",
    read_archive_url,
    "s3://bucket/prefix or file:///folder",
    roles=(WEB, WORKER, UPKEEP, KEEPER, COMMANDS),
    example="s3://acme-evidence/toolhub",
    about="Where `manage.py archive` copies the logs to, and where old facts are read from once they were dropped. "
    "Who the hub is at an S3 storage is found as by other programs "
    "(`AWS_ACCESS_KEY_ID` and its like).",
)
TOOLHUB_ARCHIVE_ENDPOINT = VARIABLES.url(
    "TOOLHUB_ARCHIVE_ENDPOINT",
    schemes=("https", "http"),
    roles=(WEB, WORKER, UPKEEP, KEEPER, COMMANDS),
    example="https://s3.eu-central-1.example.org",
    about="The address of an S3 storage that is not Amazon's.",
)
