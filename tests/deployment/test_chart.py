"""The chart: does each process that it renders get what it needs, and nothing else?"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from evidence.log.signers.tokens import TokenAddress
from kernel.variables import BOXD, EVERY, read_sandbox_hosts
from tests.support.rendered_chart import CHART, ROLES, Rendered, read
from toolhub.variables import VARIABLES

ROOT = CHART.parents[1]
OF_THE_HUB = ROLES.keys() - {"boxd"}  # processes with its database and its keys
LET_OUT = ("external_services", "sandbox_pool")  # workers, for packages


def test_no_process_but_boxd_holds_an_engine_or_anything_else_of_a_node(rendered: Rendered) -> None:
    for each in rendered.workloads:
        of_the_node = [volume["hostPath"]["path"] for volume in each.pod["volumes"] if "hostPath" in volume]
        holds = each.component == "boxd"
        assert of_the_node == (
            ["/var/run/docker.sock", "/var/lib/toolhub/run", "/var/lib/toolhub/deps"] if holds else []
        )
        assert {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & each.pod.keys() == set()
        assert each.pod["securityContext"].get("supplementalGroups", []) == ([998] if holds else [])
        assert [port for port in each.container.get("ports", []) if "hostPort" in port] == []
    assert rendered.component("boxd")


def test_sandbox_hosts_are_daemon_sets_on_nodes_of_their_own(rendered: Rendered) -> None:
    hosts = rendered.component("boxd")
    for each in hosts:
        name = each.labels["toolhub.io/sandbox-host"]
        assert each.kind == "DaemonSet"
        assert each.name == f"toolhub-boxd-{name}"
        assert each.pod["nodeSelector"] == {"toolhub.io/sandbox-host": name}, "one name, one node"
        assert each.pod["tolerations"] == [
            {"key": "toolhub.io/sandbox-host", "operator": "Exists", "effect": "NoSchedule"}
        ]
        assert each.spec["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}, "one on an engine"
    assert len({each.name for each in hosts}) == len(hosts)
    others = [each for each in rendered.workloads if each.component != "boxd"]
    assert [each.name for each in others if "tolerations" in each.pod] == []


def test_boxd_has_its_certificate_and_no_other_secret(rendered: Rendered) -> None:
    values = read_values(rendered)["secrets"]["certificates"]
    files = {"ca.pem", "side.pem", "side.key"}
    held = {}
    for each in [*rendered.component("boxd"), *rendered.component("worker")]:
        [volume] = [volume for volume in each.pod["volumes"] if volume["name"] == "certificate"]
        [mount] = [mount for mount in each.container["volumeMounts"] if mount["name"] == "certificate"]
        assert {f"{mount['mountPath']}/{item['path']}" for item in volume["secret"]["items"]} == {
            each.environment[f"TOOLHUB_SANDBOX_TLS_{name}"] for name in ("CA", "CERTIFICATE", "KEY")
        }
        assert {item["path"] for item in volume["secret"]["items"]} == files
        assert mount["readOnly"] is True
        held[each.name] = volume["secret"]["secretName"]
    for each in rendered.component("boxd"):
        assert {secret for secret, _ in each.secrets} == {held[each.name]}
        assert [name for name, value in each.environment.items() if isinstance(value, dict)] == []
    assert {held[each.name] for each in rendered.component("worker")} == {values["worker"]}
    of_hosts = [held[each.name] for each in rendered.component("boxd")]
    assert values["worker"] not in of_hosts
    assert len(set(of_hosts)) == len(of_hosts), "each host has a certificate of its own"


def test_workers_ask_each_sandbox_host_by_the_name_of_its_service(rendered: Rendered) -> None:
    services = {each["metadata"]["name"]: each["spec"] for each in rendered.of("Service")}
    hosts = {each.name: each for each in rendered.component("boxd")}
    wanted = {f"tls://{name}.hub.svc:8443" for name in hosts}

    for each in rendered.component("worker"):
        assert set(read_sandbox_hosts(str(each.environment["TOOLHUB_SANDBOX_HOSTS"]))) == wanted
    for name, host in hosts.items():
        [port] = services[name]["ports"]
        [bound] = host.container["ports"]
        assert services[name]["clusterIP"] == "None"
        assert services[name]["publishNotReadyAddresses"] is True, "one that drains is still asked to end a call"
        assert (port["port"], port["targetPort"], bound["containerPort"]) == (8443, bound["name"], 8443)
        assert host.environment["TOOLHUB_BOXD_BIND"] == "0.0.0.0:8443"
        mine = [each.name for each in rendered.workloads if services[name]["selector"].items() <= each.labels.items()]
        assert mine == [name], "a name leads to one host"


def test_workers_and_hosts_tell_boxes_apart_by_the_same_name(rendered: Rendered) -> None:
    both = [*rendered.component("worker"), *rendered.component("boxd")]

    for name in ("TOOLHUB_INSTANCE", "TOOLHUB_SANDBOX_IMAGE"):
        assert len({each.environment[name] for each in both}) == 1
    given = {name for each in both for name in each.environment if name.startswith("TOOLHUB_SANDBOX_NETWORKS")}
    assert given == ({"TOOLHUB_SANDBOX_NETWORKS"} if rendered.example == "sandbox_pool" else set())
    for each in both:
        assert given <= each.environment.keys(), "what `settings` says of boxes counts on both sides"


def test_only_the_keeper_has_the_signing_key_and_only_the_job_is_the_owner_of_the_tables(rendered: Rendered) -> None:
    secrets = read_values(rendered)["secrets"]
    names = {key: row["name"] for key, row in secrets.items() if "name" in row}
    holders: dict[str, set[str]] = {}
    for each in rendered.workloads:
        for secret, _ in each.secrets:
            holders.setdefault(secret, set()).add(each.component)

    assert holders[names["signing"]] == {"keeper"}
    assert holders[names["owner"]] == {"init"}
    assert holders[names["database"]] == {"web", "worker", "upkeep", "keeper"}
    assert rendered.of("Secret") == [], "the chart knows the names of Secrets only"
    others = [each for each in rendered.workloads if each.component in OF_THE_HUB - {"keeper"}]
    assert {each.environment["TOOLHUB_SIGNING_KEY_FILE"] for each in others} == {""}
    of_signers = {"TOOLHUB_SIGNER", *(name for name in VARIABLES.rows if name.startswith("TOOLHUB_SIGNING_"))}
    for each in [*others, *rendered.component("boxd")]:
        assert (of_signers - {"TOOLHUB_SIGNING_KEY_FILE"}) & each.environment.keys() == set()


@pytest.mark.parametrize(
    ("example", "told", "files"),
    [
        (
            "minimal",
            {"TOOLHUB_SIGNER": "file", "TOOLHUB_SIGNING_KEY_FILE": "/signing/keys.json"},
            {"keys.json": "/signing/keys.json"},
        ),
        (
            "sandbox_pool",
            {
                "TOOLHUB_SIGNER": "token",
                "TOOLHUB_SIGNING_KEY_FILE": "",
                "TOOLHUB_SIGNING_PKCS11_URI": "pkcs11:token=toolhub;object=hub?module-path=/opt/module/libmodule.so"
                "&pin-source=file:/signing/pin",
            },
            {"pin": "/signing/pin"},
        ),
        (
            "external_services",
            {
                "TOOLHUB_SIGNER": "transit",
                "TOOLHUB_SIGNING_KEY_FILE": "",
                "TOOLHUB_SIGNING_TRANSIT_URL": "https://bao.example.org:8200/v1/transit",
                "TOOLHUB_SIGNING_TRANSIT_PREFIX": "hub",
                "TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE": "/signing/token",
                "TOOLHUB_SIGNING_TRANSIT_CA": "/signing/ca.pem",
            },
            {"token": "/signing/token", "ca.crt": "/signing/ca.pem"},
        ),
    ],
)
def test_a_keeper_gets_what_its_signer_needs_and_nothing_of_another(
    example: str, told: dict[str, str], files: dict[str, str]
) -> None:
    [keeper] = read(example).component("keeper")
    [volume] = [volume for volume in keeper.pod["volumes"] if volume["name"] == "signing"]

    assert {name: value for name, value in keeper.environment.items() if name.startswith("TOOLHUB_SIGN")} == told
    assert {item["key"]: f"/signing/{item['path']}" for item in volume["secret"]["items"]} == files
    if address := told.get("TOOLHUB_SIGNING_PKCS11_URI"):
        assert TokenAddress.parse(address).pin_source == Path("/signing/pin")


def test_redis_may_be_left_out() -> None:
    without, with_it = read("sandbox_pool"), read("minimal")

    assert [each.name for each in without.workloads if "TOOLHUB_REDIS_URL" in each.environment] == []
    assert {each.component for each in with_it.workloads if "TOOLHUB_REDIS_URL" in each.environment} == OF_THE_HUB
    for found, ports in ((without, set()), (with_it, {6379})):
        opened = {
            port["port"]
            for each in found.of("NetworkPolicy")
            for rule in each["spec"]["egress"]
            for port in rule["ports"]
        }
        assert opened & {6379} == ports


def read_values(rendered: Rendered) -> dict[str, Any]:
    """Its values: those of the chart, and what the example says of Secrets instead."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    given = yaml.safe_load((CHART / "examples" / f"{rendered.example}.yaml").read_text())
    for name, row in given.get("secrets", {}).items():
        values["secrets"][name] |= row
    return values


def test_each_process_gets_the_settings_of_its_role_and_no_secret_of_another(rendered: Rendered) -> None:
    rows = VARIABLES.rows
    for each in rendered.workloads:
        role = ROLES[each.component]
        for name, value in each.environment.items():
            if name in ("POD_IP", "OTEL_EXPORTER_OTLP_ENDPOINT"):
                continue
            is_secret = isinstance(value, dict)
            assert rows[name].secret == is_secret, name
            if is_secret:
                assert {role, EVERY} & set(rows[name].roles), (each.name, name)


def test_the_chart_decides_nothing_for_a_role_that_does_not_read_it() -> None:
    for each in chain.from_iterable(read(example).workloads for example in ("minimal", "high_availability")):
        role, decided = ROLES[each.component], each.environment.keys() - {"POD_IP", "TOOLHUB_SIGNING_KEY_FILE"}
        assert [name for name in decided if not {role, EVERY} & set(VARIABLES.rows[name].roles)] == []
        if each.component == "boxd":
            assert [
                name for name in decided if BOXD not in VARIABLES.rows[name].roles and name != "TOOLHUB_DATA_DIR"
            ] == []


def test_every_process_is_confined(rendered: Rendered) -> None:
    for each in rendered.workloads:
        user = each.pod["securityContext"]
        assert user["runAsNonRoot"] is True
        assert user["runAsUser"] == user["runAsGroup"] == user["fsGroup"] == 10001
        assert user["seccompProfile"] == {"type": "RuntimeDefault"}
        assert each.container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert each.pod["automountServiceAccountToken"] is False
        assert each.pod["enableServiceLinks"] is False
        assert each.pod["serviceAccountName"] in {
            account["metadata"]["name"] for account in rendered.of("ServiceAccount")
        }
        resources = each.container["resources"]
        assert all({"cpu", "memory"} <= resources[bound].keys() for bound in ("requests", "limits"))
    assert rendered.of("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding") == []
    assert "--uid 10001 " in (ROOT / "docker/hub.Dockerfile").read_text()


def test_a_process_says_whether_it_lives_and_whether_it_can_work(rendered: Rendered) -> None:
    for each in rendered.workloads:
        if each.component == "init":
            continue
        if each.component == "boxd":  # it speaks no HTTP: it is asked by its own socket
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert each.container[probe]["exec"] == {"command": ["python", "-m", "toolhub.boxd", "--check"]}
            assert each.environment["TOOLHUB_BOXD_SOCKET"] == "/data/boxd.sock", "which no other pod mounts"
            continue
        ports = {port["name"]: port["containerPort"] for port in each.container["ports"]}
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            asked = each.container[probe]["httpGet"]
            assert (asked["path"], asked["port"]) == (path, "http" if each.component == "web" else "probe")
        bind = each.environment["TOOLHUB_BIND" if each.component == "web" else "TOOLHUB_PROBE_BIND"]
        assert bind == f"0.0.0.0:{ports['http' if each.component == 'web' else 'probe']}"


def test_kubernetes_waits_until_a_process_has_ended_by_itself(rendered: Rendered) -> None:
    [web] = rendered.component("web")
    drain = int(str(web.environment["TOOLHUB_DRAIN_S"]))
    assert web.pod["terminationGracePeriodSeconds"] >= drain + 10 + 5  # uvicorn's own patience, and the process' end
    assert "lifecycle" not in web.container, "it drains by itself; a pause before SIGTERM would only delay that"
    for each in rendered.component("worker"):
        assert each.pod["terminationGracePeriodSeconds"] >= 90
    for each in rendered.component("boxd"):
        drain = int(str(each.environment["TOOLHUB_BOXD_DRAIN_S"]))
        assert each.pod["terminationGracePeriodSeconds"] >= drain + 30
        assert drain >= 300, "as long as a tool may take"
        assert "lifecycle" not in each.container
    for name in ("upkeep", "keeper"):
        [each] = rendered.component(name)
        assert each.pod["terminationGracePeriodSeconds"] >= 30  # toolhub.loops.ENDED_WITHIN_S


def test_every_pod_has_a_network_policy_that_says_both_ways(rendered: Rendered) -> None:
    policies = [each["spec"] for each in rendered.of("NetworkPolicy")]
    for each in rendered.workloads:
        [mine] = [policy for policy in policies if policy["podSelector"]["matchLabels"].items() <= each.labels.items()]
        assert mine["policyTypes"] == ["Ingress", "Egress"]
        blocks = [to["ipBlock"]["cidr"] for rule in mine["egress"] for to in rule.get("to", []) if "ipBlock" in to]
        if each.component == "init" or (each.component == "worker" and rendered.example not in LET_OUT):
            assert [block for block in blocks if not block.startswith("10.20.")] == [], "it reaches nothing outside"
        if each.component == "boxd" and rendered.example != "sandbox_pool":
            assert mine["egress"] == [], "who holds an engine reaches nothing"
        if each.component == "init":
            assert mine["ingress"] == []
    assert len(policies) == len(ROLES)


def test_only_workers_come_to_sandbox_hosts_and_only_at_their_port(rendered: Rendered) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in rendered.of("NetworkPolicy")}
    [comes] = policies["toolhub-boxd"]["ingress"]
    [peer] = comes["from"]

    assert comes["ports"] == [{"port": 8443, "protocol": "TCP"}]
    came = {each.component for each in rendered.workloads if matches(peer, each.labels)}
    assert came == {"worker"}
    for name, policy in policies.items():
        goes = [rule for rule in policy["egress"] if {"port": 8443, "protocol": "TCP"} in rule["ports"]]
        if name != "toolhub-worker":
            assert goes == []
            continue
        [rule] = goes
        [peer] = rule["to"]
        assert rule["ports"] == [{"port": 8443, "protocol": "TCP"}]
        assert {each.component for each in rendered.workloads if matches(peer, each.labels)} == {"boxd"}


def matches(peer: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a pod of this namespace with these labels is such a peer."""
    assert peer.keys() == {"podSelector"}
    return bool(peer["podSelector"]["matchLabels"].items() <= labels.items())


def test_tools_that_reach_hosts_get_a_way_out_by_value() -> None:
    [policy] = [
        each["spec"] for each in read("sandbox_pool").of("NetworkPolicy") if each["metadata"]["name"] == "toolhub-boxd"
    ]

    blocks = {to["ipBlock"]["cidr"] for rule in policy["egress"] for to in rule["to"] if "ipBlock" in to}
    assert blocks == {"0.0.0.0/0", "10.30.0.0/16"}
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443}


def test_every_process_that_serves_has_a_disruption_budget_that_lets_nodes_be_drained(rendered: Rendered) -> None:
    budgets = [each["spec"] for each in rendered.of("PodDisruptionBudget")]
    for each in rendered.workloads:
        if (
            each.component == "boxd"
        ):  # a drain leaves pods of DaemonSets alone, and a budget that says maxUnavailable counts none of them
            assert [one for one in budgets if one["selector"]["matchLabels"].items() <= each.labels.items()] == []
        elif each.component != "init":
            [mine] = [one for one in budgets if one["selector"]["matchLabels"].items() <= each.labels.items()]
            assert mine["maxUnavailable"] == 1


def test_tables_are_made_before_anything_else_by_a_job_that_is_the_first(rendered: Rendered) -> None:
    [job] = rendered.of("Job")
    hooks = [each for each in rendered.objects if "helm.sh/hook" in each["metadata"].get("annotations", {})]

    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in hooks} == {"pre-install,pre-upgrade"}
    assert {each["kind"] for each in hooks} == {"Job", "ServiceAccount", "NetworkPolicy"}
    for each in hooks:
        weight = int(each["metadata"]["annotations"]["helm.sh/hook-weight"])
        assert weight == (0 if each == job else -10), "what it needs is there before it"
    [init] = rendered.component("init")
    accounts = {each["metadata"]["name"] for each in hooks if each["kind"] == "ServiceAccount"}
    assert init.pod["serviceAccountName"] in accounts
    assert init.container["command"] == ["python", "manage.py", "init"]


def test_what_the_chart_starts_is_what_the_compose_file_starts() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    started = {
        each.component: [word for word in each.container["command"] if word != "--quiet"]
        for each in read("minimal").workloads
    }

    assert started == {name: services["migrate" if name == "init" else name]["command"] for name in ROLES}


def test_workers_of_each_class_of_work_are_there(rendered: Rendered) -> None:
    taken = [str(each.environment["TOOLHUB_WORK_CLASSES"]).split(",") for each in rendered.component("worker")]

    assert sorted(chain.from_iterable(taken)) == ["long", "quick"]


def test_workers_are_scaled_by_the_age_of_the_calls_that_they_take() -> None:
    found = read("autoscaled")
    [keda], [hpa] = found.of("ScaledObject"), found.of("HorizontalPodAutoscaler")

    [trigger] = keda["spec"]["triggers"]
    assert trigger["metadata"]["query"] == 'max(toolhub_queue_age_seconds{work_class=~"quick"})'
    assert (trigger["metricType"], trigger["metadata"]["threshold"]) == ("Value", "5")
    [metric] = hpa["spec"]["metrics"]
    assert metric["external"]["metric"] == {
        "name": "toolhub_queue_age_seconds",
        "selector": {"matchLabels": {"work_class": "long"}},
    }
    assert metric["external"]["target"] == {"type": "Value", "value": "60"}
    targets = {each["spec"]["scaleTargetRef"]["name"] for each in (keda, hpa)}
    scaled = [each for each in found.component("worker") if each.name in targets]
    assert len(scaled) == 2
    assert [each.name for each in scaled if "replicas" in each.spec] == [], "who scales says how many"


def test_what_watches_a_hub_comes_along() -> None:
    found = read("high_availability")
    [rule], [monitor], [dashboard] = found.of("PrometheusRule"), found.of("PodMonitor"), found.of("ConfigMap")

    assert rule["spec"] == yaml.safe_load((CHART / "observability/alerts.yml").read_text())
    shipped = json.loads((CHART / "observability/dashboard.json").read_text())
    assert json.loads(dashboard["data"]["toolhub.json"]) == shipped
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    scraped = {end["port"] for end in monitor["spec"]["podMetricsEndpoints"]}
    for each in found.workloads:
        if each.component not in ("init", "boxd"):  # workers say what the boxes of hosts look like
            assert each.labels["app.kubernetes.io/name"] == "toolhub", "the job's name, which the alerts look for"
            assert len(scraped & {port["name"] for port in each.container["ports"]}) == 1
            assert "TOOLHUB_METRICS_TOKEN" in each.environment
