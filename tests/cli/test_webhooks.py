"""`soundmark webhooks`: endpoints and their secrets, deliveries, events, replays and test messages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes.running_apps import served_in_thread
from support.webhooks.received_webhooks import ReceivedWebhooks

from .conftest import Tenant, answered, cells

URL = "https://consumer.example.org/hooks"
EVENT_ID = "evn_" + "e" * 22
OTHER_EVENT_ID = "evn_" + "f" * 22


@pytest.fixture
def chosen(tenant: Tenant) -> Tenant:
    """A tenant that later commands use by default."""
    assert tenant.run_as_operator("use", tenant.organization_id, tenant.project_id).status == 0
    return tenant


def make_endpoint(tenant: Tenant, *arguments: str, url: str = URL) -> str:
    made = answered(tenant.run_as_operator("webhooks", "create", url, *arguments, "--json"))
    identity: str = made["id"]
    return identity


def test_an_endpoint_is_made_and_its_secret_printed_once(chosen: Tenant) -> None:
    done = chosen.run_as_operator("webhooks", "create", URL, "--event", "code.issued", "--event", "code.revoked")
    assert (done.status, done.err) == (0, "")
    secret = done.out.splitlines()[-1].removeprefix("secret, shown only once: ")
    assert secret.startswith("whsec_")
    listed = chosen.run_as_operator("webhooks", "list", "--json")
    (endpoint,) = answered(listed)["data"]
    assert (endpoint["event_types"], endpoint["project_id"]) == (["code.issued", "code.revoked"], None)
    shown = chosen.run_as_operator("webhooks", "show", endpoint["id"])
    assert secret not in listed.out + shown.out
    assert [row[1] for row in cells(shown)][:5] == [endpoint["id"], URL, "code.issued code.revoked", "all", "yes"]


def test_an_endpoint_may_be_of_one_project(chosen: Tenant, tmp_path: Path) -> None:
    of_project = ("--project", chosen.project_id, "--description", "playout")
    done = chosen.run_as_operator("webhooks", "create", URL, *of_project, "--quiet", "--secret-file", f"{tmp_path}/s")
    endpoint = answered(chosen.run_as_operator("webhooks", "show", done.out.strip(), "--json"))
    assert (endpoint["project_id"], endpoint["description"]) == (chosen.project_id, "playout")


def test_a_secret_is_rotated_into_a_file_of_its_owner_alone(chosen: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    create = ("webhooks", "create", URL, "--secret-file", str(file))
    endpoint_id = chosen.run_as_operator(*create, "--quiet").out.strip()
    first = file.read_text()
    assert chosen.run_as_operator(
        "webhooks", "rotate-secret", endpoint_id, "--secret-file", str(file)
    ).refusal.endswith("--force overwrites it")
    rolled = chosen.run_as_operator(
        "webhooks", "rotate-secret", endpoint_id, "--secret-file", str(file), "--force", "--json"
    )
    assert "secret" not in answered(rolled)
    assert file.read_text() not in {first, ""}
    assert file.stat().st_mode & 0o777 == 0o600
    assert chosen.run_as_operator("webhooks", "create", URL, "--quiet").status == 2, "the secret would be lost"


def test_an_endpoint_is_changed_and_deleted(chosen: Tenant) -> None:
    endpoint_id = make_endpoint(chosen, "--event", "code.issued")

    def change(*arguments: str) -> dict[str, Any]:
        changed: dict[str, Any] = answered(
            chosen.run_as_operator("webhooks", "update", endpoint_id, *arguments, "--json")
        )
        return changed

    assert change("--disable")["enabled"] is False
    assert change("--enable", "--url", f"{URL}/2")["url"] == f"{URL}/2"
    assert change("--all-events", "--description", "all")["event_types"] is None
    assert change("--event", "code.expired") == {
        **change("--description", "all"),
        "enabled": True,
        "event_types": ["code.expired"],
    }
    assert chosen.run_as_operator("webhooks", "update", endpoint_id).status == 2
    assert chosen.run_as_operator("webhooks", "update", endpoint_id, "--event", "a", "--all-events").status == 2
    assert chosen.run_as_operator("webhooks", "delete", endpoint_id).out == f"{endpoint_id} is deleted\n"
    missing = chosen.run_as_operator("webhooks", "delete", endpoint_id)
    assert missing.refusal.startswith("webhook_endpoint_not_found (404)")


def test_a_server_key_and_an_unknown_type_are_refused(chosen: Tenant) -> None:
    assert chosen.run_with_key("webhooks", "list").refusal.startswith("user_token_required (403)")
    wrong = chosen.run_as_operator("webhooks", "create", URL, "--event", "code.sung")
    assert wrong.refusal.startswith("validation_failed (422)")


@pytest.fixture
def delivered(chosen: Tenant, past_policies: Callable[..., None]) -> str:
    """An endpoint with one delivery that waits and one that failed, as a worker leaves them."""
    endpoint_id = make_endpoint(chosen)
    for event_id, delivery_id, status, code, error, next_at in (
        (EVENT_ID, "whd_" + "1" * 22, "pending", 500, None, "2099-01-01T00:00:00Z"),
        (OTHER_EVENT_ID, "whd_" + "2" * 22, "failed", None, "deadline", None),
    ):
        past_policies(
            "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
            " VALUES (%s, %s, 'code.revoked', 'user', 'ada', %s, now())",
            *(chosen.organization_id, event_id, json.dumps({"xr_id": "xr_1"})),
        )
        past_policies(
            "INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, event_id, event_type, status, attempts,"
            " last_status_code, last_error, next_attempt_at, created_at)"
            " VALUES (%s, %s, %s, %s, 'code.revoked', %s, 3, %s, %s, %s, now())",
            *(chosen.organization_id, delivery_id, endpoint_id, event_id, status, code, error, next_at),
        )
    return endpoint_id


def test_deliveries_are_listed_with_their_last_answers(chosen: Tenant, delivered: str) -> None:
    rows = cells(chosen.run_as_operator("webhooks", "deliveries", delivered))
    assert rows == [
        [OTHER_EVENT_ID, "code.revoked", "failed", "3", "deadline", ""],
        [EVENT_ID, "code.revoked", "pending", "3", "500", "2099-01-01 00:00:00Z"],
    ]
    failed = answered(chosen.run_as_operator("webhooks", "deliveries", delivered, "--status", "failed", "--json"))
    assert [row["event_id"] for row in failed["data"]] == [OTHER_EVENT_ID]


def test_an_event_is_printed_as_it_is_sent(chosen: Tenant, delivered: str) -> None:
    assert delivered.startswith("whe_")
    event = answered(chosen.run_as_operator("webhooks", "event", EVENT_ID))
    assert (event["type"], event["data"]["xr_id"]) == ("code.revoked", "xr_1")
    assert event["data"]["actor"] == {"type": "user", "id": "ada"}


def test_events_are_replayed_by_their_ids_or_their_time(chosen: Tenant, delivered: str) -> None:
    """An event that waits for its next attempt is left out."""
    one = chosen.run_as_operator("webhooks", "replay", delivered, "--event", EVENT_ID)
    assert one.out == "0 events are sent again\n"
    period = ("--from", "2020-01-01T00:00:00Z", "--to", "2099-01-01T00:00:00Z")
    assert chosen.run_as_operator("webhooks", "replay", delivered, *period).out == "1 event is sent again\n"
    for wrong in ((), period[:2], period[2:], (*period, "--event", EVENT_ID)):
        assert chosen.run_as_operator("webhooks", "replay", delivered, *wrong).status == 2
    unknown = chosen.run_as_operator("webhooks", "replay", delivered, "--event", "evn_unknown")
    assert unknown.refusal.startswith("webhook_event_not_found (404)")


def test_a_test_message_says_what_the_endpoint_answered(chosen: Tenant) -> None:
    consumer = ReceivedWebhooks(statuses=[204, 503])
    with served_in_thread(consumer) as url:
        endpoint_id = make_endpoint(chosen, url=url)
        taken = chosen.run_as_operator("webhooks", "test", endpoint_id)
        assert taken.out.startswith(f"{endpoint_id} answered 204 after ")
        refused = chosen.run_as_operator("webhooks", "test", endpoint_id)
        assert refused.refusal == f"{endpoint_id} did not accept the message: status 503"
    (first, _) = consumer.requests
    assert json.loads(first.body)["type"] == "webhook.test"
    down = chosen.run_as_operator("webhooks", "test", endpoint_id, "--json")
    assert (down.status, json.loads(down.out)["status_code"]) == (1, None)
