"""The console at the start and after the end of a `soundmark up`: its port and its tickets."""

from pathlib import Path

import pytest
from support.console_links import ask_link, redeem_as_owner, refused_link, tickets_of
from support.up_process import READY_S, running_up, until

from soundmark.kit.http.sockets import reserve_port

pytestmark = pytest.mark.xdist_group("up")

OIDC = {"SOUNDMARK_OIDC_ISSUER": "https://id.example", "SOUNDMARK_OIDC_CLIENT_ID": "console"}


def test_a_start_forgets_the_links_of_earlier_runs(seeded: Path, old_ticket: str) -> None:
    assert refused_link(seeded).startswith(f"{seeded / 'up.json'} does not exist")
    with running_up(seeded) as again:
        folder = tickets_of(again.until_ready())
        assert len(list(folder.iterdir())) == 1
        assert not redeem_as_owner(folder, old_ticket)
        again.process.kill()
        again.process.wait()
        assert "is `soundmark up` running on" in until_refused(seeded)


def until_refused(data_dir: Path) -> str:
    """Return the refusal of `console link` once the children of a killed `up` have ended."""
    until(lambda: ask_link(data_dir).returncode != 0, READY_S)
    return refused_link(data_dir)


def test_a_chosen_port_is_the_consoles_and_with_an_identity_provider_there_are_no_links(seeded: Path) -> None:
    with reserve_port("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
    with running_up(seeded, arguments=("--port", "0", "--console-port", str(port)), environ=OIDC) as up:
        until(lambda: "  Private " in up.until_ready().printed, READY_S)
        assert up.where["console_url"] == f"http://127.0.0.1:{port}"
        assert up.answers("console")
        assert up.children()["serve core"].environ()["SOUNDMARK_CONSOLE_URL"] == f"http://127.0.0.1:{port}"
        assert "  Sign in         with https://id.example\n" in up.printed
        environ = up.children()["serve console"].environ()
        assert not {"SOUNDMARK_CONSOLE_TICKETS_PATH", "SOUNDMARK_OPERATOR_TOKEN"} & environ.keys()
        assert not (seeded / "sign-in-tickets").exists(), "that of the last run is removed"
        assert refused_link(seeded) == (
            "there are no sign-in links here: `soundmark up` said at its start how to sign in"
        )


def test_at_another_address_there_are_no_links(seeded: Path) -> None:
    """The console takes forms from its own address only, and a cookie of `https` is not for this one."""
    with running_up(seeded, environ={"SOUNDMARK_CONSOLE_URL": "https://console.example"}) as up:
        until(lambda: "  Private " in up.until_ready().printed, READY_S)
        (line,) = [line for line in up.printed.splitlines() if line.startswith("  Sign in ")]
        assert "nobody can without an identity provider" in line
        assert up.answers("console"), "up.json has the address on this machine"
        assert up.children()["serve core"].environ()["SOUNDMARK_CONSOLE_URL"] == "https://console.example"
