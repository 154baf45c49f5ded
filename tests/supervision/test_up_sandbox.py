"""`soundmark up --sandbox`: the stand-ins run beside the components, and Core uses them."""

import re
from pathlib import Path

import httpx2
import psutil
import pytest
from soundmark_sdk.client import Client
from support.processes.guide_blocks import Reader
from support.processes.up_process import READY_S, Up, refused_up, status_of, until

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

SANDBOX = "sandbox --port"


def find_sandbox(up: Up) -> psutil.Process | None:
    return up.children().get(SANDBOX)


def test_the_demo_fills_it_with_organisations_that_look_used(with_sandbox: Up, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").symlink_to(with_sandbox.data_dir)
    url, token = with_sandbox.where["base_url"], with_sandbox.where["operator_token"]
    printed = Reader(tmp_path, url).run("sh", "soundmark demo --fill")

    made = re.findall(
        r"^(.+): (org_\S+), (\d+) Codes, ([\d,]+) events in 30 days, .* a failed webhook$", printed, re.MULTILINE
    )
    assert len(made) == 3
    organization_id, codes_count, events_count = made[0][1:]
    with Client(url, token, organization_id=organization_id) as client:
        project_id = next(project.id for project in client.projects.list() if project.name == "On air")
    with Client(url, token, organization_id=organization_id, project_id=project_id) as client:
        codes = list(client.codes.list())
        assert len(codes) == int(codes_count)
        assert {code.status for code in codes} >= {"active", "revoked"}
        assert {campaign.status for campaign in client.campaigns.list()} == {"active", "archived"}
        (integration,) = client.integrations.list()
        report = client.audience.report(integration.id)
        assert report.events == int(events_count.replace(",", ""))
        assert {each.provider for each in client.subscriptions.list()} == {"card", "local", "contract"}
        assert {ticket.status for ticket in client.tickets.list()} == {"active"}
        (endpoint,) = client.webhooks.list()
        assert endpoint.disabled_reason is not None


def test_the_sandbox_is_supervised_and_up_json_names_it(with_sandbox: Up) -> None:
    url = with_sandbox.where["sandbox_url"]
    assert status_of(f"{url}/readyz") == 200
    assert with_sandbox.answers("console")
    until(lambda: url in with_sandbox.printed, 20)

    core = with_sandbox.children()["serve core"].environ()
    assert core["SOUNDMARK_CARD_API_URL"] == f"{url}/card"
    key = core["SOUNDMARK_CARD_SECRET_KEY"]
    prices = httpx2.get(f"{url}/card/v1/prices", headers={"authorization": f"Bearer {key}"}, trust_env=False)
    assert prices.status_code == 200
    assert key not in with_sandbox.printed
    page = httpx2.get(url, trust_env=False).text
    assert with_sandbox.where["base_url"] in page, "where webhooks go"

    process = find_sandbox(with_sandbox)
    assert process is not None
    process.kill()
    until(lambda: find_sandbox(with_sandbox) not in {None, process}, READY_S)
    until(lambda: status_of(f"{url}/readyz") == 200, READY_S)
    assert with_sandbox.children()["serve core"].environ()["SOUNDMARK_CARD_SECRET_KEY"] == key
    assert with_sandbox.stop() == 0


def test_a_setting_that_the_sandbox_decides_is_refused_in_one_line(tmp_path: Path) -> None:
    line = refused_up(tmp_path / "data", "--sandbox", environ={"SOUNDMARK_CARD_API_URL": "https://api.example"})
    assert line == (
        "soundmark: SOUNDMARK_CARD_API_URL cannot be set here: "
        "`up --sandbox` sets it for its sandbox; unset it, or leave out --sandbox"
    )
