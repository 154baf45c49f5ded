"""`soundmark tickets`: opening, answering, listing and showing support tickets."""

import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.running_apps import served_in_thread
from support.processes.secret_leaks import remember_secret

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.sandbox.app import create_app
from soundmark.sandbox.options import SandboxOptions, choose_credentials

from .conftest import Done, Tenant, answered, cells, environ


@pytest.fixture
def asking(tenant: Tenant) -> Iterator[tuple[Tenant, str]]:
    """A tenant of a service with the sandbox's desk, and the sandbox's URL."""
    options = SandboxOptions("", choose_credentials({}, SystemEntropy()))
    key = options.secret("SUPPORT_API_KEY")
    remember_secret(key)
    with served_in_thread(create_app(options)) as url:
        tenant.service.run_sql(
            "INSERT INTO platform_configuration VALUES"
            f" ('support_desk_base_url', '\"{url}/desk\"', now()), ('support_desk_mailbox_id', '1', now())"
        )
        path = "/v1/platform/settings/secrets/support_api_key"
        tenant.service.client.put(path, json={"value": key}).raise_for_status()
        yield tenant, url


def run(tenant: Tenant, *arguments: str) -> Done:
    """Run a command of the group as the operator, in the tenant's organisation."""
    return tenant.run_as_operator("tickets", *arguments, "--organization", tenant.organization_id)


def test_a_ticket_is_opened_listed_and_shown(asking: tuple[Tenant, str]) -> None:
    tenant, url = asking
    ticket_id = run(tenant, "create", "No sound", "It is quiet.\nWhy?", "--quiet").out.strip()
    assert ticket_id.startswith("tkt_")
    ((listed, subject, status, _),) = cells(run(tenant, "list"))
    assert (listed, subject, status) == (ticket_id, "No sound", "active")
    reply = {"text": "Is it \x1b[31mon?", "status": "pending"}
    httpx2.post(f"{url}/control/desk/conversations/1/reply", json=reply, trust_env=False).raise_for_status()
    shown = run(tenant, "show", ticket_id).out
    assert "It is quiet.\nWhy?" in shown
    assert "Is it \\u001b[31mon?" in shown, "an agent's text does not colour the terminal"
    document = answered(run(tenant, "show", ticket_id, "--json"))
    assert (document["status"], len(document["messages"])) == ("pending", 2)


def test_after_a_failure_the_same_request_completes_the_ticket(asking: tuple[Tenant, str]) -> None:
    tenant, url = asking
    switch = {"system": "desk", "kind": "server_error", "operation": "create_conversation", "times": 0}
    httpx2.post(f"{url}/control/switches", json=switch, trust_env=False).raise_for_status()
    failed = run(tenant, "create", "No sound", "It is quiet.")
    assert failed.status == 1
    assert "support_unavailable (503)" in failed.err
    (key,) = [word.rstrip(":") for word in failed.err.split() if word.startswith("supreq_")]
    httpx2.post(f"{url}/control/switches/reset", json={}, trust_env=False).raise_for_status()
    repeated = answered(run(tenant, "create", "No sound", "It is quiet.", "--request-id", key, "--json"))
    assert (repeated["request_id"], repeated["status"]) == (key, "active")
    assert len(cells(run(tenant, "list"))) == 1


def test_a_reply_is_added_once(asking: tuple[Tenant, str]) -> None:
    tenant, url = asking
    ticket_id = run(tenant, "create", "No sound", "It is quiet.", "--quiet").out.strip()
    switch = {"system": "desk", "kind": "server_error", "operation": "create_thread", "times": 0}
    httpx2.post(f"{url}/control/switches", json=switch, trust_env=False).raise_for_status()
    failed = run(tenant, "reply", ticket_id, "It is \x1b[31mon.")
    assert (failed.status, "support_unavailable (503)" in failed.err) == (1, True)
    (key,) = [word.rstrip(":") for word in failed.err.split() if word.startswith("supreq_")]
    httpx2.post(f"{url}/control/switches/reset", json={}, trust_env=False).raise_for_status()
    replied = answered(run(tenant, "reply", ticket_id, "It is \x1b[31mon.", "--request-id", key, "--json"))
    assert [message["body"] for message in replied["messages"]] == ["It is quiet.", "It is \x1b[31mon."]
    assert "It is \\u001b[31mon." in run(tenant, "show", ticket_id).out
    assert run(tenant, "reply", ticket_id, "").refusal.startswith("validation_failed (422)")


def test_a_refused_request_is_not_to_be_repeated(asking: tuple[Tenant, str]) -> None:
    tenant, _ = asking
    assert run(tenant, "create", "", "It is quiet.").refusal.startswith("validation_failed (422)")


def test_a_server_key_may_not(tenant: Tenant) -> None:
    assert tenant.run_with_key("tickets", "list").refusal.startswith("user_token_required (403)")


def test_a_message_on_standard_input_is_utf_8_whatever_the_locale(asking: tuple[Tenant, str]) -> None:
    """The text may come from another machine."""
    tenant, _ = asking
    settings = {"BASE_URL": tenant.service.url, "API_KEY": OPERATOR_TOKEN}
    ticket = ["tickets", "create", "No sound", "-", "--organization", tenant.organization_id]
    issue = ["codes", "issue", *tenant.issuing[:4], "--expires-in", "1h", "--intent", "@-"]

    def run_shell(redirection: str, *arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "soundmark", *arguments],
            env={**environ(settings), "PYTHONIOENCODING": "latin-1:strict"},
            capture_output=True, check=False, timeout=60, input=content,
        )  # fmt: skip

    made = run_shell("", *ticket, "-q", content="C’est calme. 😀".encode())
    refused = run_shell("", *ticket, content=b"Il fait fr\xe9quemment silence.")
    closed = run_shell("<&-", *issue)

    shown = answered(run(tenant, "show", made.stdout.decode().strip(), "--json"))
    assert [message["body"] for message in shown["messages"]] == ["C’est calme. 😀"]
    assert (refused.returncode, refused.stderr) == (1, b"soundmark: standard input is not UTF-8\n")
    assert (closed.returncode, closed.stderr) == (1, b"soundmark: standard input is closed\n")
