"""`soundmark up --sandbox`: the stand-ins run beside the components, and Core uses them."""

from pathlib import Path

import httpx2
import psutil
import pytest
from support.up_process import READY_S, Up, refused_up, running_up, status_of, until

pytestmark = pytest.mark.xdist_group("up")

SANDBOX = "sandbox --port"


def find_sandbox(up: Up) -> psutil.Process | None:
    return up.children().get(SANDBOX)


def test_the_sandbox_is_supervised_and_up_json_names_it(seeded: Path) -> None:
    with running_up(seeded, arguments=("--port", "0", "--sandbox")) as running:
        up = running.until_ready()
        url = up.where["sandbox_url"]
        assert status_of(f"{url}/readyz") == 200
        assert up.answers("console")
        until(lambda: url in up.printed, 20)

        core = up.children()["serve core"].environ()
        assert core["SOUNDMARK_CARD_API_URL"] == f"{url}/card"
        key = core["SOUNDMARK_CARD_SECRET_KEY"]
        prices = httpx2.get(f"{url}/card/v1/prices", headers={"authorization": f"Bearer {key}"}, trust_env=False)
        assert prices.status_code == 200
        assert key not in up.printed
        page = httpx2.get(url, trust_env=False).text
        assert up.where["base_url"] in page, "where webhooks go"

        process = find_sandbox(up)
        assert process is not None
        process.kill()
        until(lambda: find_sandbox(up) not in {None, process}, READY_S)
        until(lambda: status_of(f"{url}/readyz") == 200, READY_S)
        assert up.children()["serve core"].environ()["SOUNDMARK_CARD_SECRET_KEY"] == key
        assert up.stop() == 0


def test_a_setting_that_the_sandbox_decides_is_refused_in_one_line(tmp_path: Path) -> None:
    line = refused_up(tmp_path / "data", "--sandbox", environ={"SOUNDMARK_CARD_API_URL": "https://api.example"})
    assert line == (
        "soundmark: SOUNDMARK_CARD_API_URL cannot be set here: "
        "`up --sandbox` sets it for its sandbox; unset it, or leave out --sandbox"
    )
