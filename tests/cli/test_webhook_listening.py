"""`soundmark webhooks listen`: it makes an endpoint, forwards, and leaves nothing behind, however it ends."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from soundmark_sdk.client import Client, ServiceUnreachable
from soundmark_sdk.webhooks import verify
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.command_server import find_forked_soundmark
from support.processes.faulty_proxy import FaultyProxy
from support.processes.running_apps import served_in_thread
from support.webhooks.received_webhooks import ReceivedWebhooks

from soundmark.cli import webhook_listening
from soundmark.cli.webhook_forwarding import forwarding
from soundmark.kit.clock import SystemClock

from .conftest import Service, Tenant, environ, serving_core


@pytest.fixture
def consumer() -> ReceivedWebhooks:
    """A consumer of webhooks."""
    return ReceivedWebhooks()


@pytest.fixture
def consumer_url(consumer: ReceivedWebhooks) -> Iterator[str]:
    """The consumer's URL."""
    with served_in_thread(consumer) as url:
        yield url


@contextlib.contextmanager
def listening(tenant: Tenant, forward_to: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    settings = {"BASE_URL": tenant.service.url, "API_KEY": OPERATOR_TOKEN}
    to = ("--forward-to", forward_to, "--organization", tenant.organization_id)
    with subprocess.Popen(
        [find_forked_soundmark(), "webhooks", "listen", *to, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(settings),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def endpoints_of(tenant: Tenant) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tenant.answer("/v1/webhook-endpoints")["data"]
    return listed


def send_test(service: Service, tenant: Tenant, endpoint_id: str) -> dict[str, Any]:
    """Have the service send a test message, as soon as it allows one after the one before."""
    path, params = f"/v1/webhook-endpoints/{endpoint_id}/test", {"organization_id": tenant.organization_id}
    deadline = SystemClock().monotonic_s() + 60
    while (answer := service.client.post(path, params=params, timeout=60)).status_code == 429:
        assert SystemClock().monotonic_s() < deadline
    tested: dict[str, Any] = answer.raise_for_status().json()
    return tested


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_forwards_until_a_signal_and_removes_its_endpoint(
    service: Service, tenant: Tenant, consumer: ReceivedWebhooks, consumer_url: str, signum: signal.Signals
) -> None:
    consumer.statuses.append(500)
    with listening(tenant, f"{consumer_url}/hooks", "--event", "code.issued") as process:
        secret = read_line(process).removeprefix("secret, shown only once: ")
        (endpoint,) = endpoints_of(tenant)
        assert read_line(process) == f"{endpoint['id']} forwards to {consumer_url}/hooks; Ctrl-C ends it"
        assert (endpoint["event_types"], endpoint["project_id"]) == (["code.issued"], None)
        for status in (500, 200):
            assert send_test(service, tenant, endpoint["id"])["status_code"] == status
            assert re.fullmatch(rf"webhook\.test evn_\S+ -> {status} \(\d+ ms\)", read_line(process))
        process.send_signal(signum)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    assert endpoints_of(tenant) == []
    assert [(request.method, request.path) for request in consumer.requests] == [("POST", "/hooks")] * 2
    for request in consumer.requests:
        assert verify(request.headers, request.body, secret).type == "webhook.test"


def test_a_consumer_that_is_down_is_502(service: Service, tenant: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with listening(tenant, "http://127.0.0.1:9", "--secret-file", str(file)) as process:
        assert read_line(process) == f"secret, in {file}"
        assert file.read_text().startswith("whsec_")
        endpoint_id = read_line(process).split()[0]
        assert send_test(service, tenant, endpoint_id)["status_code"] == 502
        assert "-> 502: your program did not answer" in read_line(process)
        process.terminate()
        assert process.wait(timeout=60) == 0


class Broken(Exception):
    """Anything that ends the command."""


def make_and_break(url: str, tenant: Tenant) -> None:
    """Make the endpoint of the command at this address of the service, and fail."""
    with (
        forwarding("http://127.0.0.1:9", "/path") as running,
        Client(url, OPERATOR_TOKEN, organization_id=tenant.organization_id) as client,
        webhook_listening._endpoint(client, running, None, None) as made,
    ):
        assert [endpoint["id"] for endpoint in endpoints_of(tenant)] == [made.id]
        raise Broken


def test_it_removes_its_endpoint_when_it_fails(service: Service, tenant: Tenant) -> None:
    with pytest.raises(Broken):
        make_and_break(service.url, tenant)
    assert endpoints_of(tenant) == []


def test_it_removes_an_endpoint_whose_making_was_not_answered(service: Service, tenant: Tenant) -> None:
    with FaultyProxy(service.url, "answer lost", where="/v1/webhook-endpoints") as proxy:
        with pytest.raises(ServiceUnreachable):
            make_and_break(proxy.url, tenant)
        assert [request.method for request in proxy.passed] == ["POST", "GET", "DELETE"]
    assert endpoints_of(tenant) == []


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("--base-url", "https://codes.example.org"), "is not on this machine"),
        (("--event", "code.sung"), "validation_failed (422)"),
    ],
)
def test_it_is_refused_in_one_line(tenant: Tenant, arguments: tuple[str, ...], refusal: str) -> None:
    done = tenant.run_as_operator(
        *("webhooks", "listen", "--forward-to", "http://127.0.0.1:9", "--organization", tenant.organization_id),
        *arguments,
    )
    assert refusal in done.refusal
    assert endpoints_of(tenant) == []


def test_its_target_is_an_address(tenant: Tenant) -> None:
    assert tenant.run_as_operator("webhooks", "listen", "--forward-to", "localhost:3000").status == 2


def test_a_service_that_takes_no_loopback_addresses_says_what_to_set(service: Service, tenant: Tenant) -> None:
    with serving_core(service.database_url, webhook_allow_loopback="false") as strict:
        done = tenant.run_as_operator(
            *("webhooks", "listen", "--forward-to", "http://127.0.0.1:9", "--organization", tenant.organization_id),
            BASE_URL=strict.url,
        )
    assert done.refusal.startswith("validation_failed (422)")
    assert done.refusal.endswith("SOUNDMARK_WEBHOOK_ALLOW_LOOPBACK=true")
