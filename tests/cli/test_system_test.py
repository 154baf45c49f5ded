"""`soundmark platform test`: what Core finds when it uses a system, and the exit status."""

import json
from collections.abc import Iterator

import pytest
from support.processes.running_apps import served_in_thread

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.sandbox.app import create_app
from soundmark.sandbox.options import SandboxOptions, choose_credentials

from .conftest import Tenant, answered


@pytest.fixture
def accounting(tenant: Tenant) -> Iterator[None]:
    """An accounting system, and its settings."""
    options = SandboxOptions("", choose_credentials({}, SystemEntropy()), refusal_pause_s=0)
    with served_in_thread(create_app(options)) as url:
        tenant.service.run_sql(
            "INSERT INTO platform_configuration (name, value, updated_at) VALUES ('accounting_base_url', %s, now())",
            f'"{url}/accounting"',
        )
        set_key(tenant, options.secret("ACCOUNTING_API_KEY"))
        yield


def set_key(tenant: Tenant, key: str) -> None:
    path = "/v1/platform/settings/secrets/accounting_api_key"
    tenant.service.client.put(path, json={"value": key}).raise_for_status()


@pytest.mark.usefixtures("accounting")
def test_a_system_that_works_is_said_to_work(tenant: Tenant) -> None:
    done = tenant.run_as_operator("platform", "test", "accounting")
    assert (done.status, done.err) == (0, "")
    assert done.out == "The accounting system accepted the key and answered as expected.\n"
    shown = answered(tenant.run_as_operator("platform", "test", "accounting", "--json"))
    assert (shown["system"], shown["ok"], shown["code"]) == ("accounting", True, "answered")


@pytest.mark.usefixtures("accounting")
def test_a_system_that_does_not_work_is_exit_status_1_with_the_reason(tenant: Tenant) -> None:
    set_key(tenant, "another key")
    failed = tenant.run_as_operator("platform", "test", "accounting")
    assert failed.out == ""
    assert failed.refusal == "the test of accounting failed: The accounting system refused the key."
    shown = tenant.run_as_operator("platform", "test", "accounting", "--json")
    assert (shown.status, json.loads(shown.out)["code"]) == (1, "key_refused")


def test_another_caller_or_system_is_refused(tenant: Tenant) -> None:
    assert "requires a person's login" in (refusal := tenant.run_with_key("platform", "test", "card").refusal), refusal
    assert tenant.run_as_operator("platform", "test", "local").status == 2
