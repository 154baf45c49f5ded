"""`soundmark play` in its own process against a real Core: what it writes, issues and revokes, and how it ends."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import httpx2
import numpy as np
import pytest
import soundfile
from soundmark_sdk import hear
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.command_server import find_forked_soundmark
from support.processes.running_apps import served_in_thread
from support.processes.up_process import until

from soundmark.kit.text.timestamps import format_timestamp

from .conftest import Tenant, environ, run

BYTES_PER_S: Final = 2 * 48_000
# A sound of protocol 5 takes a second and a half.
FAST: Final = ("--protocol", "5", "--gap", "0", "--out", "-")
# Where nothing reads the samples, which come to a halt once a pipe is full.
UNREAD: Final = ("--out", os.devnull)


class Playing:
    """A running command, of which the samples and the lines are read."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def read_sound(self, seconds: float) -> bytes:
        """Return the next samples, as soon as they are played."""
        return self._out.read(round(seconds * 48_000) * 2)

    def read_line(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode().rstrip("\n")

    def read_until(self, pattern: str) -> re.Match[str]:
        """Return the match in the next line that has one."""
        while True:
            line = self.read_line()
            assert line or self.process.poll() is None, self.process.returncode
            match = re.search(pattern, line)
            if match is not None:
                return match

    def end(self, signum: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal, and return its status and the rest of its lines."""
        self.process.send_signal(signum)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()

    @property
    def _out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


@contextlib.contextmanager
def playing(tenant: Tenant, *arguments: str, url: str | None = None, **settings: str) -> Iterator[Playing]:
    """Run the command with the API key until the block ends."""
    given = {"BASE_URL": url or tenant.service.url, "API_KEY": tenant.key, **settings}
    given = {name: value for name, value in given.items() if value}
    with subprocess.Popen(
        [find_forked_soundmark(), "play", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environ(given), "STATE_DIRECTORY": str(Path.cwd() / "state")},
    ) as process:
        try:
            yield Playing(process)
        finally:
            process.kill()


def heard_in(samples: bytes, folder: Path) -> set[str]:
    """Return the frames in samples."""
    path = folder / "heard.wav"
    soundfile.write(path, np.frombuffer(samples, "<i2"), 48_000)
    return {frame.text for frame in hear(path)}


def list_codes(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the project's Codes, newest first."""
    listed: list[dict[str, Any]] = tenant.answer("/v1/codes", project_id=tenant.project_id, limit="100")["data"]
    return listed


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_plays_a_code_until_a_signal(tenant: Tenant, tmp_path: Path, signum: signal.Signals) -> None:
    (code,) = tenant.make_codes(1)
    with playing(tenant, "--code", code["xr_id"], *FAST) as running:
        assert heard_in(running.read_sound(4), tmp_path) == {code["broadcast_frame"]}
        assert running.read_line().startswith(f"playing {code['xr_id']}, valid until ")
        assert running.end(signum) == (0, "")


def test_a_revoked_code_stops_within_five_seconds(tenant: Tenant) -> None:
    """The samples come in real time, so their number says how long it took."""
    (code,) = tenant.make_codes(1)
    with playing(tenant, "--code", code["xr_id"], *FAST) as running:
        running.read_sound(2)
        tenant.service.revoke(code)
        out, err = running.process.communicate(timeout=60)
        assert len(out) <= 5 * BYTES_PER_S
        assert running.process.returncode == 0
        assert err.decode().splitlines()[-1] == f"ended: {code['xr_id']} was revoked"


def test_a_rotation_issues_ahead_and_revokes_at_the_end_what_did_not_sound(tenant: Tenant, tmp_path: Path) -> None:
    tomorrow = format_timestamp(datetime.now(UTC) + timedelta(days=1))
    (source,) = tenant.make_codes(1, expires_at=tomorrow)
    rotation = ("--rotate", "6h", "--outage", "18h")
    with playing(tenant, "--code", source["xr_id"], *rotation, *FAST) as running:
        assert running.read_line() == "this issues 4 Codes a day; 99 are left of this month's quota"
        played = running.read_until(r"playing (\S+),")[1]
        issued = [code for code in list_codes(tenant) if code["xr_id"] != source["xr_id"]]
        (frame,) = [code["broadcast_frame"] for code in issued if code["xr_id"] == played]
        assert heard_in(running.read_sound(4), tmp_path) == {frame}
        assert running.end() == (0, "")
    # The last one may not outlive its source.
    assert sorted(code["expires_at"][14:] for code in issued)[:3] == ["01:00.000Z"] * 3
    assert len({code["expires_at"] for code in issued}) == len(issued) == 4
    states = {code["xr_id"]: code["status"] for code in list_codes(tenant)}
    assert {xr_id for xr_id, state in states.items() if state == "active"} == {played, source["xr_id"]}
    assert all(tenant.answer(f"/v1/codes/{code['xr_id']}")["intent"] == source["intent"] for code in issued)


def test_a_kill_and_a_restart_issue_nothing_twice(tenant: Tenant) -> None:
    (source,) = tenant.make_codes(1)
    arguments = ("--code", source["xr_id"], "--rotate", "10m", "--outage", "20m", *UNREAD)
    for _ in range(2):
        with playing(tenant, *arguments) as running:
            running.read_until(r"playing (\S+),")
            running.process.kill()
            running.process.wait(timeout=60)
    ends = [code["expires_at"] for code in list_codes(tenant)]
    assert len(set(ends)) == len(ends) >= 4


def test_after_a_clean_end_it_issues_anew(tenant: Tenant) -> None:
    """A repeated idempotency key would bring back the Codes that were revoked."""
    (source,) = tenant.make_codes(1)
    arguments = ("--code", source["xr_id"], "--rotate", "10m", "--outage", "20m", *UNREAD)
    for _ in range(2):
        with playing(tenant, *arguments) as running:
            running.read_until("playing")
            held = json.loads(next(Path("state").glob("*.json")).read_text())["state"]["lines"][source["xr_id"]]["held"]
            states = {code["xr_id"]: code["status"] for code in list_codes(tenant)}
            assert [states[code["xr_id"]] for code in held] == ["active"] * 3
            assert running.end() == (0, "")


def test_a_campaign_is_played_with_the_code_that_expires_last_until_it_is_stopped(
    tenant: Tenant,
) -> None:
    campaign = tenant.make_campaign(ends_at=format_timestamp(datetime.now(UTC) + timedelta(hours=2)))
    later = format_timestamp(datetime.now(UTC) + timedelta(hours=5))
    (last,) = tenant.make_codes(1, campaign_id=campaign["id"], expires_at=later)
    tenant.make_codes(2, campaign_id=campaign["id"])
    with playing(tenant, "--campaign", campaign["id"], *UNREAD) as running:
        assert running.read_until(r"playing (\S+),")[1] == last["xr_id"]
        params = {"organization_id": tenant.organization_id}
        tenant.service.client.post(f"/v1/campaigns/{campaign['id']}/stop", params=params).raise_for_status()
        assert running.read_until("silent: the campaign has no active Code")
        assert running.end()[0] == 0


def test_a_stopped_campaign_is_not_begun(tenant: Tenant) -> None:
    campaign = tenant.make_campaign()
    params = {"organization_id": tenant.organization_id}
    tenant.service.client.post(f"/v1/campaigns/{campaign['id']}/stop", params=params).raise_for_status()
    done = tenant.run("play", "--campaign", campaign["id"], "--out", "-")
    assert done.refusal == f"{campaign['id']} was archived"


def test_it_plays_on_while_the_service_is_gone_and_after_a_power_cut(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    with contextlib.ExitStack() as stack:
        with served_in_thread(tenant.service.make_other_app()) as url:
            running = stack.enter_context(playing(tenant, "--code", code["xr_id"], *FAST, url=url))
            running.read_until("playing")
        running.read_until("the service cannot be asked: ")
        assert heard_in(running.read_sound(5)[-4 * BYTES_PER_S :], tmp_path) == {code["broadcast_frame"]}
        running.process.kill()
        running.process.wait(timeout=60)
    with playing(tenant, "--code", code["xr_id"], *FAST, url=url) as again:
        assert heard_in(again.read_sound(4), tmp_path) == {code["broadcast_frame"]}


def test_a_key_that_is_revoked_and_replaced_is_silence_in_between(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    request = {"organization_id": tenant.organization_id, "project_id": tenant.project_id, "scopes": ["codes:read"]}
    keys = [tenant.service._post("/v1/api-keys", request) for _ in range(2)]
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(keys[0]["secret"])
    with playing(tenant, "--code", code["xr_id"], "--key-file", str(file), *UNREAD, API_KEY="") as running:
        running.read_until("playing")
        path = f"/v1/api-keys/{keys[0]['id']}/revoke"
        tenant.service.client.post(path, params={"organization_id": tenant.organization_id}).raise_for_status()
        running.read_until(r"silent: the service refuses the key \(unauthenticated\)")
        file.write_text(keys[1]["secret"])
        running.read_until(f"playing {code['xr_id']}")
        _, rest = running.end()
        assert not any(key["secret"] in rest for key in keys)


def test_a_key_that_may_not_issue_does_not_begin_to_rotate(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    request = {"organization_id": tenant.organization_id, "project_id": tenant.project_id, "scopes": ["codes:read"]}
    key = tenant.service._post("/v1/api-keys", request)["secret"]
    done = tenant.run("play", "--code", code["xr_id"], "--rotate", "15m", "--out", "-", key=key)
    assert done.refusal == "the key may not issue Codes: insufficient_scope (403)"


def test_it_serves_its_health_and_its_metrics(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    with playing(tenant, "--code", code["xr_id"], "--metrics-port", "0", *UNREAD) as running:
        port = running.read_until(r"metrics and health on 127\.0\.0\.1:(\d+)")[1]
        running.read_until("playing")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            health, metrics, other = (client.get(path) for path in ("/healthz", "/metrics", "/"))
        assert running.end()[0] == 0
    assert (health.status_code, metrics.status_code, other.status_code) == (200, 200, 404)
    assert health.json() == {
        "status": "playing",
        "reason": None,
        "xr_id": code["xr_id"],
        "held_count": 0,
        "held_until": code["expires_at"],
        "service_reachable": True,
    }
    assert "soundmark_play_playing 1.0\n" in metrics.text
    assert "brd_" not in health.text + metrics.text


def test_outside_its_schedule_it_is_silent_and_healthy(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    opening = (datetime.now(UTC) + timedelta(hours=12)).replace(minute=0)
    hours = ("--schedule", f"{opening:%H:%M}-{opening:%H}:30", "--time-zone", "UTC")
    with playing(tenant, "--code", code["xr_id"], *hours, "--metrics-port", "0", *FAST) as running:
        port = running.read_until(r"metrics and health on 127\.0\.0\.1:(\d+)")[1]
        line = f"outside its schedule until {opening:%Y-%m-%d %H:%M:00Z}"
        assert running.read_line() == f"waiting: {line}"
        assert not any(running.read_sound(1))
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            health, metrics = client.get("/healthz"), client.get("/metrics")
        assert running.end() == (0, "")
    assert (health.status_code, health.json()["status"], health.json()["reason"]) == (200, "waiting", line)
    assert "soundmark_play_in_schedule 0.0\n" in metrics.text


def test_it_writes_a_file_that_states_its_length(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    path = tmp_path / "out.wav"
    with playing(tenant, "--code", code["xr_id"], "--gap", "0", "--out", str(path)) as running:
        running.read_until("playing")
        until(lambda: path.stat().st_size > 4 * BYTES_PER_S, 60)
        assert running.end() == (0, "")
    assert soundfile.info(str(path)).frames == (path.stat().st_size - 44) // 2
    assert {frame.text for frame in hear(path)} == {code["broadcast_frame"]}


def test_a_refusal_leaves_files_as_they_are(tenant: Tenant, tmp_path: Path) -> None:
    """Also with --force: there is nothing to put in the place of what is there."""
    kept = tmp_path / "kept.wav"
    kept.write_bytes(b"last week's")
    (code,) = tenant.make_codes(1)
    tenant.run("codes", "revoke", code["xr_id"])
    for path in (kept, tmp_path / "new.wav"):
        done = tenant.run("play", "--code", code["xr_id"], "--out", str(path), "--force")
        assert "was revoked" in done.refusal
    assert (kept.read_bytes(), (tmp_path / "new.wav").exists()) == (b"last week's", False)


def test_a_reader_that_goes_away_is_one_line(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    with playing(tenant, "--code", code["xr_id"], *FAST) as running:
        running.read_sound(0.5)
        assert running.process.stdout is not None
        running.process.stdout.close()
        assert running.read_until("soundmark: nothing reads standard output any more")
        assert running.process.wait(timeout=60) == 1


def test_an_operator_names_the_organisation(tenant: Tenant) -> None:
    (code,) = tenant.make_codes(1)
    arguments = ("--code", code["xr_id"], *UNREAD)
    done = tenant.run_as_operator("play", *arguments)
    assert (done.status, "--organization" in done.err) == (2, True)
    with playing(tenant, *arguments, "--organization", tenant.organization_id, API_KEY=OPERATOR_TOKEN) as running:
        assert running.read_until("playing")
        assert running.end() == (0, "")


def test_a_second_agent_needs_a_state_of_its_own(tenant: Tenant, tmp_path: Path) -> None:
    (code,) = tenant.make_codes(1)
    state = ("--state", str(tmp_path / "state.json"))
    with playing(tenant, "--code", code["xr_id"], *state, *UNREAD) as running:
        running.read_until("playing")
        done = tenant.run("play", "--code", code["xr_id"], *state, "--out", "-")
        assert done.refusal.startswith("another `soundmark play` uses ")
        assert json.loads((tmp_path / "state.json").read_text())["version"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--code", "xr_1", "--campaign", "cmp_1"),
        ("--code", "xr_1", "--outage", "1h"),
        ("--code", "xr_1", "--rotate", "59s"),
        ("--code", "xr_1", "--rotate", "2d"),
        ("--code", "xr_1", "--rotate", "soon"),
        ("--code", "xr_1", "--rotate", "1m", "--outage", "1d"),
        ("--code", "xr_1", "--schedule", "09:00-18:00"),
        ("--code", "xr_1", "--time-zone", "UTC"),
        ("--code", "xr_1", "--time-zone", "UTC", "--schedule", "Mon-Fri 9-18"),
        ("--code", "xr_1", "--time-zone", "Mars/Olympus", "--schedule", "09:00-18:00"),
        ("--code", "xr_1", "--gap", "-1"),
        ("--code", "xr_1", "--level", "1"),
        ("--code", "xr_1", "--protocol", "2"),
        ("--code", "xr_1", "--out", "-", "--device", "0"),
        ("--code", "xr_1", "--metrics-port", "65536"),
        tuple(word for number in range(21) for word in ("--code", f"xr_{number}")),
    ],
)
def test_wrong_usage_is_status_2(arguments: tuple[str, ...]) -> None:
    done = run("play", *arguments, settings={"API_KEY": f"xak_{'a' * 43}", "BASE_URL": "http://127.0.0.1:9"})
    assert (done.status, done.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("--out", "-"), r"Nothing answers at http://127\.0\.0\.1:9 \(connection refused\); nothing is held"),
        (("--out", "."), r"\. cannot be written: it is a directory"),
        (("--out", "nowhere/out.wav"), "cannot be written: there is no folder nowhere"),
        (
            ("--out", "-", "--metrics-port", "1", "--metrics-host", "192.0.2.1"),
            "port 1 of 192.0.2.1 cannot be listened",
        ),
        (("--out", "-", "--state", "."), r"\. cannot be written: it is a directory"),
        (("--out", "-", "--state", "none/s"), r"none/s cannot be written: No such file or directory"),
    ],
)
def test_it_is_refused_in_one_line(arguments: tuple[str, ...], refusal: str) -> None:
    done = run("play", "--code", "xr_1", *arguments, settings={"API_KEY": "k" * 20, "BASE_URL": "http://127.0.0.1:9"})
    assert re.search(refusal, done.refusal)
    assert done.out == ""


def test_a_closed_standard_output_is_one_line() -> None:
    play = ["play", "--code", "xr_1", "--out", "-"]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "soundmark", *play],
        stderr=subprocess.PIPE, check=False, timeout=90,
        env=environ({"API_KEY": "k" * 20, "BASE_URL": "http://127.0.0.1:9"}),
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (1, b"soundmark: standard output is closed\n")
