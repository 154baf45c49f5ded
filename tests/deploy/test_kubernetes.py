"""deploy/kubernetes: what kubectl makes of it has the shapes of Kubernetes' kinds and follows our own rules."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final, get_type_hints

import pytest
from support.deployment.commands import ROOT, check_settings
from support.deployment.compose import is_ours, make_secrets, read_compose
from support.deployment.kustomize import render

from soundmark import settings
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import environment_name

FOREIGN: Final = re.compile(r"(?:postgresql|barmancloud)\.cnpg\.io/v1")
OURS: Final = re.compile(r"registry\.example\.org/soundmark:")
GUIDE: Final = ROOT / "docs" / "operating" / "kubernetes.md"
USER: Final = 10001
IDLE_S: Final = 2  # For so long, a component keeps an idle connection to another one.
CLOSING_S: Final = 30  # What a process may need after the pause in which it still answers.


@pytest.fixture(scope="module")
def resources() -> list[dict[str, Any]]:
    """The overlay, which contains the base."""
    return render("cloudnative-pg")


def of_kind(resources: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {it["metadata"]["name"]: it for it in resources if it["kind"] == kind}


def pods(resources: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: it["spec"]["template"]["spec"] for name, it in of_kind(resources, "Deployment").items()}


def containers(pod: Any) -> list[Any]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def our_containers(resources: list[dict[str, Any]]) -> Iterator[tuple[str, Any, Any]]:
    for name, pod in pods(resources).items():
        yield from ((name, pod, it) for it in containers(pod) if OURS.match(it["image"]))


def test_each_resource_has_the_shape_of_its_kind(resources: list[dict[str, Any]]) -> None:
    native = [it for it in resources if not FOREIGN.fullmatch(it["apiVersion"])]
    assert {it["kind"] for it in resources if it not in native} == {"Cluster", "ObjectStore", "ScheduledBackup"}
    # The console's Deployment with a field of another kind shows that the schemas are asked.
    broken = json.loads(json.dumps(of_kind(resources, "Deployment")["console"]))
    broken["spec"]["template"]["spec"]["containers"][0]["probe"] = {}
    command = [str(ROOT / "scripts" / "node"), sys.executable, str(ROOT / "tests" / "deploy" / "kubernetes_kinds.js")]
    done = subprocess.run(
        command, input=json.dumps([*native, broken]), check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    (complaint,) = done.stdout.splitlines()
    assert complaint.startswith("Deployment console: ")
    assert "probe" in complaint


def test_each_process_has_the_settings_of_its_command(
    resources: list[dict[str, Any]], subtests: pytest.Subtests
) -> None:
    (shared,) = [it["data"] for name, it in of_kind(resources, "ConfigMap").items() if name.startswith("soundmark-")]
    for name, _, container in our_containers(resources):
        with subtests.test(f"{name} {container['name']}"):
            own = {variable["name"] for variable in container["env"]}
            check_settings(container["args"], own | (set(shared) if "envFrom" in container else set()))


def test_the_commands_are_those_of_the_compose_file(resources: list[dict[str, Any]]) -> None:
    """Which its test runs."""
    composed = [it["command"] for it in read_compose(make_secrets())["services"].values() if is_ours(it)]
    assert {tuple(it["args"]) for _, _, it in our_containers(resources)} == {tuple(command) for command in composed}


def test_no_secret_is_in_a_config_map_or_in_clear(resources: list[dict[str, Any]]) -> None:
    secret = {
        environment_name(name)
        for model in settings.READERS.values()
        for name, hint in get_type_hints(model).items()
        if "Secret" in str(hint) or hint is Secret
    }
    assert {"SOUNDMARK_MASTER_KEY", "SOUNDMARK_AUDIO_CREDENTIAL"} <= secret
    clear = {name for it in of_kind(resources, "ConfigMap").values() for name in it["data"]}
    clear |= {it["name"] for _, _, container in our_containers(resources) for it in container["env"] if "value" in it}
    assert clear & secret == {"SOUNDMARK_RATE_LIMIT_URL"}, "which holds no password"
    assert not of_kind(resources, "Secret")


def test_each_secret_is_one_that_the_guide_makes(resources: list[dict[str, Any]]) -> None:
    page = GUIDE.read_text("utf-8")
    references = [
        it["valueFrom"]["secretKeyRef"] for _, _, c in our_containers(resources) for it in c["env"] if "valueFrom" in it
    ]
    clusters = {f"{name}-app" for name in of_kind(resources, "Cluster")}
    for it in references:
        if it["name"] not in clusters:
            block = re.search(rf"create secret generic {it['name']} (?:.*\\\n)*.*\n", page)
            assert block, it["name"]
            assert f"--from-literal={it['key']}=" in block[0]
    assert clusters <= {it["name"] for it in references}


def test_each_process_is_confined(resources: list[dict[str, Any]]) -> None:
    for name, pod in pods(resources).items():
        assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(pod):
            context = container["securityContext"]
            assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False), name
            assert context["capabilities"] == {"drop": ["ALL"]}
    assert {pod["securityContext"]["runAsUser"] for _, pod, _ in our_containers(resources)} == {USER}


def test_a_pod_answers_until_nobody_asks_it_any_more(resources: list[dict[str, Any]]) -> None:
    served = [(name, pod, it) for name, pod, it in our_containers(resources) if it["args"][0] == "serve"]
    assert len(served) == 4
    (settings,) = [it["data"] for it in of_kind(resources, "ConfigMap").values() if "SOUNDMARK_BASE_URL" in it["data"]]
    drain_s = int(settings["SOUNDMARK_DRAIN_S"])
    assert drain_s > IDLE_S
    for name, pod, container in served:
        readiness, port = container["readinessProbe"], {"port": "http"}
        assert readiness["httpGet"] == {"path": "/healthz" if name == "console" else "/readyz?scope=process", **port}, (
            name
        )
        assert (
            container["livenessProbe"]["httpGet"]
            == container["startupProbe"]["httpGet"]
            == {"path": "/healthz", **port}
        )
        pause_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pause_s > readiness["periodSeconds"] * readiness["failureThreshold"]
        assert pod["terminationGracePeriodSeconds"] >= pause_s + drain_s + CLOSING_S


def test_ports_are_the_same_in_commands_settings_services_and_policies(resources: list[dict[str, Any]]) -> None:
    policies = of_kind(resources, "NetworkPolicy")
    for name, _, container in our_containers(resources):
        ports = {it["name"]: it["containerPort"] for it in container.get("ports", [])}
        command = container["args"]
        assert ports.get("http") == (int(command[command.index("--port") + 1]) if "--port" in command else None)
        metrics = [int(it["value"]) for it in container["env"] if it["name"].endswith("METRICS_PORT")]
        assert ([ports["metrics"]] if "metrics" in ports else []) == metrics
        if command[0] != "migrate":
            opened = [it["port"] for rule in policies[name]["spec"].get("ingress", []) for it in rule["ports"]]
            assert sorted(opened) == sorted(ports.values()), name
        if "http" in ports:
            assert of_kind(resources, "Service")[name]["spec"]["ports"][0]["port"] == ports["http"]


def test_nothing_is_allowed_that_no_policy_names(resources: list[dict[str, Any]]) -> None:
    policies = of_kind(resources, "NetworkPolicy")
    assert policies["nothing"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, deployment in of_kind(resources, "Deployment").items():
        selector = policies[name]["spec"]["podSelector"]["matchLabels"]
        assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    for name in of_kind(resources, "Cluster"):
        selected = policies[name.removeprefix("soundmark-")]["spec"]["podSelector"]["matchLabels"]
        assert selected == {"cnpg.io/cluster": name}
    assert "egress" not in policies["audio"]["spec"], "Audio asks nobody"


def test_a_drain_of_a_node_leaves_each_component_running(resources: list[dict[str, Any]]) -> None:
    budgets = of_kind(resources, "PodDisruptionBudget")
    for name, deployment in of_kind(resources, "Deployment").items():
        if any(OURS.match(it["image"]) for it in containers(pods(resources)[name])):
            assert budgets[name]["spec"]["maxUnavailable"] == 1
            assert budgets[name]["spec"]["selector"] == deployment["spec"]["selector"]
            assert deployment["spec"]["replicas"] >= 2 or name == "work-audience"


def test_a_commit_is_on_two_servers_before_it_is_acknowledged(resources: list[dict[str, Any]]) -> None:
    clusters = of_kind(resources, "Cluster")
    assert len(clusters) == 2
    for name, cluster in clusters.items():
        assert cluster["spec"]["instances"] >= 3
        assert cluster["spec"]["postgresql"]["synchronous"]["number"] == 1
        assert cluster["spec"]["postgresql"]["synchronous"]["dataDurability"] == "required"
        assert of_kind(resources, "ScheduledBackup")[name]["spec"]["cluster"] == {"name": name}
