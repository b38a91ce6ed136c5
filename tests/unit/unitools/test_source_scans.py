"""Source scans: is what source names of the world outside found, and nothing that is only told of?"""

from __future__ import annotations

import pytest

from unitools.source_scans import SourceScan, guess_effect, is_secret_name

SOURCE = '''
"""A client of https://docs.example.org/ that reads os.environ["OF_THE_DOCSTRING"]."""
import os, subprocess
from os import environ, getenv
import requests

class Client:
    url = f"https://api.example.org:8443/v1/{os.environ['SHOP_KEY']}"
    region = os.environ.get("SHOP_REGION", "eu")
    token = getenv("SHOP_TOKEN")
    other = environ["OTHER"]
    env_vars = [EnvVar(name="DECLARED_KEY", description="x")]
    def validate(self, values):
        return get_from_dict_or_env(values, "key", "DICT_KEY")
    def post(self):
        subprocess.run(["uv", "add", "exa_py"], check=True)
        requests.post(self.url)
'''


def scan(source: str) -> SourceScan:
    found = SourceScan()
    found.add(source, "client.py")
    return found


@pytest.mark.req("BRING-4")
def test_names_of_the_environment_hosts_and_installers_are_found_with_their_lines() -> None:
    found = scan(SOURCE)

    assert found.environment == {
        "SHOP_KEY": "client.py:8",
        "SHOP_REGION": "client.py:9",
        "SHOP_TOKEN": "client.py:10",
        "OTHER": "client.py:11",
        "DECLARED_KEY": "client.py:12",
        "DICT_KEY": "client.py:14",
    }
    assert found.hosts == {"api.example.org": "client.py:8"}
    assert found.installs == {"uv add exa_py": "client.py:16"}
    assert {"os", "requests", "subprocess"} <= found.imports


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize("source", ["def broken(:", "\0", "(" * 5000])
def test_source_that_cannot_be_read_names_nothing(source: str) -> None:
    assert scan(source) == SourceScan(is_whole=False)
    assert guess_effect(scan(source)) == "Write"


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("source", "effect"),
    [
        ("def add(a, b): return a + b", "None"),
        ("import httpx\ndef get(): return httpx.get('https://a.example')", "Write"),
        ("def keep(x): open('a', 'w').write(x)", "Write"),
        ("import os\nos.environ['HOME']", "Write"),
        ("import math, json\nfrom collections.abc import Iterable\ndef root(a): return math.sqrt(a)", "None"),
        ("import smtplib\nsmtplib.SMTP('x').send_message('y')", "Write"),
        ("import stripe\nstripe.Refund.create()", "Write"),
        ("import sqlite3\nsqlite3.connect('x').execute('delete from y')", "Write"),
        ("import os\nos.system('make')", "Write"),
        ("from pathlib import Path\nPath('a').open('w')", "Write"),
        ("def keep(p): open(p, mode='w')", "Write"),
        ("def run(text): return eval(text)", "Write"),
        ("from shop.client import fetch\ndef get(): return fetch()", "Write"),
        ("from .client import fetch\ndef get(): return fetch()", "Write"),
        ("from . import client", "Write"),
    ],
)
def test_an_effect_is_guessed_none_only_where_nothing_can_reach_outside(source: str, effect: str) -> None:
    assert guess_effect(scan(source)) == effect


@pytest.mark.req("BRING-4")
def test_names_of_credentials_are_told_from_others() -> None:
    secret = [
        "OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "SERPER_APIKEY", "PGPASSWORD", "GITHUB_PAT", "ACCESSTOKEN", "PASSPHRASE",
        "TOKENS", "AWS_SECRET_ACCESS_KEY", "STRIPE_KEY", "DB_PASS", "MYSQL_PWD", "SECRET_KEY_BASE", "OPENAI_API_KEY_2",
        "REDIS_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_PRIVATE_KEY", "PRIVATEKEY", "api_key", "npm_config__auth",
        "authToken",
    ]  # fmt: skip
    other = [
        "MONKEY_HOUSE", "SHOP_REGION", "KEYBOARD", "MONKEY", "COMPASS", "SPAT", "AUTH_MODE", "AUTH_TYPE", "DISABLE_AUTH",
        "MCP_DISABLE_HTTP_AUTH", "TOKEN_LIMIT", "REDIS_KEY_PREFIX", "KEYS_DIR", "PUBLIC_KEY", "VAPID_PUBLIC_KEY", "SSH_AUTH_SOCK",
        "MAX_TOKENS", "LLM_MAX_OUTPUT_TOKENS", "TOKEN_FILE", "SORT_KEY", "PWD", "GIT_CONFIG_KEY_0",
    ]  # fmt: skip

    assert [each for each in secret if not is_secret_name(each)] == []
    assert [each for each in other if is_secret_name(each)] == []
