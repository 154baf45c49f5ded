"""`soundmark up --sandbox`: the stand-ins run beside the components, Core uses them, and docs/guides/selling.md holds.

Every block on that page runs as printed, in order.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from soundmark_sdk.client import Client
from support.processes.guide_blocks import assert_prints, read_guide, run_block
from support.processes.up_process import READY_S, Up, refused_up, running_up, status_of, until

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE, BLOCKS = read_guide("selling.md")
SANDBOX = "sandbox --port"


@pytest.fixture(scope="module")
def selling(seeded: Path) -> Iterator[Up]:
    """A running `up --sandbox`."""
    with running_up(seeded, arguments=("--port", "0", "--sandbox")) as running:
        yield running.until_ready()


def find_sandbox(up: Up) -> psutil.Process | None:
    return up.children().get(SANDBOX)


def test_every_block_prints_the_output_on_the_page(selling: Up, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").symlink_to(selling.data_dir)
    url = selling.where["base_url"]
    for language, block, printed in BLOCKS:
        assert_prints(printed, run_block(language, block, tmp_path, url), url)


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 5


def test_the_demo_fills_it_with_organisations_that_look_used(selling: Up, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").symlink_to(selling.data_dir)
    url, token = selling.where["base_url"], selling.where["operator_token"]
    printed = run_block("sh", "soundmark demo --fill", tmp_path, url)

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


def test_the_sandbox_is_supervised_and_up_json_names_it(selling: Up) -> None:
    url = selling.where["sandbox_url"]
    assert status_of(f"{url}/readyz") == 200
    assert selling.answers("console")
    until(lambda: url in selling.printed, 20)

    core = selling.children()["serve core"].environ()
    assert core["SOUNDMARK_CARD_API_URL"] == f"{url}/card"
    key = core["SOUNDMARK_CARD_SECRET_KEY"]
    prices = httpx2.get(f"{url}/card/v1/prices", headers={"authorization": f"Bearer {key}"}, trust_env=False)
    assert prices.status_code == 200
    assert key not in selling.printed
    page = httpx2.get(url, trust_env=False).text
    assert selling.where["base_url"] in page, "where webhooks go"

    process = find_sandbox(selling)
    assert process is not None
    process.kill()
    until(lambda: find_sandbox(selling) not in {None, process}, READY_S)
    until(lambda: status_of(f"{url}/readyz") == 200, READY_S)
    assert selling.children()["serve core"].environ()["SOUNDMARK_CARD_SECRET_KEY"] == key
    assert selling.stop() == 0


def test_a_setting_that_the_sandbox_decides_is_refused_in_one_line(tmp_path: Path) -> None:
    line = refused_up(tmp_path / "data", "--sandbox", environ={"SOUNDMARK_CARD_API_URL": "https://api.example"})
    assert line == (
        "soundmark: SOUNDMARK_CARD_API_URL cannot be set here: "
        "`up --sandbox` sets it for its sandbox; unset it, or leave out --sandbox"
    )
