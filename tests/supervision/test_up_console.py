"""The console of a running `soundmark up`: its address, and the one-time links with which the operator signs in."""

import socket
import stat
from pathlib import Path

import httpx2
import pytest
from support.console.links import LINK, ask_link, printed_link, redeem_as_owner, tickets_of
from support.processes.up_process import READY_S, Up, refused_up, status_of, until

pytestmark = pytest.mark.xdist_group("up")


def test_up_prints_a_link_for_the_operator(up: Up) -> None:
    link = printed_link(up)
    assert link[1] == up.where["console_url"]
    assert f"  Console         {link[1]}\n" in up.printed
    assert (tickets_of(up).parent, stat.S_IMODE(tickets_of(up).stat().st_mode)) == (up.data_dir, 0o700)


def test_a_command_prints_another_link(up: Up) -> None:
    done = ask_link(up.data_dir)
    assert (done.returncode, done.stderr) == (0, "")
    found = LINK.fullmatch(done.stdout.strip())
    assert found is not None, done.stdout
    assert found[1] == up.where["console_url"]
    assert found[2] not in up.printed
    folder = tickets_of(up)
    assert not [file.name for file in folder.iterdir() if stat.S_IMODE(file.stat().st_mode) != 0o600]


def test_the_printed_link_signs_one_browser_in(up: Up) -> None:
    """Core accepts the console's calls as the operator's: from this machine, with a token that no browser sees."""
    address = up.where["console_url"]
    path = ask_link(up.data_dir).stdout.strip().removeprefix(address)
    with httpx2.Client(base_url=address, trust_env=False) as browser:
        assert browser.get("/organizations").headers["location"].startswith("/sign-in")
        assert browser.get(path).headers["location"] == "/"
        shown = browser.get("/organizations")
        assert (shown.status_code, "operator@localhost" in shown.text) == (200, True)
        seen = shown.text + str(browser.cookies)
        assert up.where["operator_token"] not in seen
    with httpx2.Client(base_url=address, trust_env=False) as other:
        assert other.get(path).status_code == 403


def test_a_second_up_leaves_the_links_of_the_first(up: Up) -> None:
    found = LINK.fullmatch(ask_link(up.data_dir).stdout.strip())
    assert found is not None
    assert "already running" in refused_up(up.data_dir, "--port", "0")
    assert redeem_as_owner(tickets_of(up), found[2])


def test_the_console_stays_up_while_core_does_not_answer_and_says_that_it_is_not_ready(up: Up) -> None:
    """Its pages explain what is wrong, so nobody should restart it because Core is gone."""
    console = up.children()["serve console"]
    core = up.children()["serve core"]
    core.suspend()
    try:
        until(lambda: status_of(up.where["console_url"] + "/readyz") == 503, READY_S)
        assert status_of(up.where["console_url"] + "/healthz") == 200
    finally:
        core.resume()
    until(lambda: up.answers("console"), READY_S)
    assert up.children()["serve console"] == console


def test_a_chosen_port_that_is_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert refused_up(tmp_path / "data", "--port", "0", "--console-port", port) == (
            f"soundmark: 127.0.0.1:{port} is in use by another program; choose another port with --console-port"
        )
