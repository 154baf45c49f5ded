"""The console of a `soundmark up` whose operator signs in otherwise, and of one that has ended."""

import stat
from pathlib import Path

import pytest
from support.console.links import refused_link
from support.processes.up_process import READY_S, running_up, until

from soundmark.kit.http.server.sockets import reserve_port

pytestmark = pytest.mark.xdist_group("up")

OIDC = {"SOUNDMARK_OIDC_ISSUER": "https://id.example", "SOUNDMARK_OIDC_CLIENT_ID": "console"}


def test_where_nothing_runs_there_is_no_link(seeded: Path) -> None:
    assert refused_link(seeded).startswith(f"{seeded / 'up.json'} does not exist")


def test_a_chosen_port_is_the_consoles_and_with_an_identity_provider_there_are_no_links(seeded: Path) -> None:
    """Also behind a proxy: the console takes forms from its public address only."""
    with reserve_port("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
    given = {**OIDC, "SOUNDMARK_CONSOLE_URL": "https://console.example"}
    with running_up(seeded, arguments=("--port", "0", "--console-port", str(port)), environ=given) as up:
        until(lambda: "  Private " in up.until_ready().printed, READY_S)
        assert up.where["console_url"] == f"http://127.0.0.1:{port}", "the address on this machine"
        assert up.answers("console")
        assert up.children()["serve core"].environ()["SOUNDMARK_CONSOLE_URL"] == "https://console.example"
        assert "  Sign in         with https://id.example\n" in up.printed
        consoles = up.children()["serve console"].environ()
        assert not {"SOUNDMARK_CONSOLE_TICKETS_PATH", "SOUNDMARK_OPERATOR_TOKEN"} & consoles.keys()
        assert not (seeded / "sign-in-tickets").exists(), "that of the last run is removed"
        assert consoles["SOUNDMARK_CONSOLE_STATE_PATH"] == str(seeded / "console-state")
        assert stat.S_IMODE((seeded / "console-state").stat().st_mode) == 0o700
        assert refused_link(seeded) == (
            "there are no sign-in links here: `soundmark up` printed at its start how to sign in"
        )
