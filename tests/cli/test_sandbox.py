"""`soundmark sandbox`: what it prints, and how it ends."""

import contextlib
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping

import httpx2
import pytest
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import clean_environ

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.sandbox.options import CREDENTIALS, SandboxOptions, choose_credentials, settings_for_core
from soundmark.settings import CoreJobsSettings, CoreSettings


@contextlib.contextmanager
def running(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [find_forked_soundmark(), "sandbox", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environ(environ),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """Return what is printed up to the line that holds `pattern`."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.search(pattern, line):
            break
    return "".join(lines)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_the_settings_for_core_and_ends_cleanly(signum: signal.Signals) -> None:
    with running("--port", "0") as process:
        printed = read_until(process, "MAILBOX_ID")
        settings = dict(re.findall(r"^export SOUNDMARK_(\w+)=(\S+)$", printed, re.MULTILINE))
        url = settings["CARD_API_URL"].removesuffix("/card")
        assert set(settings) == {
            "CARD_API_URL", "LOCAL_API_URL", "ACCOUNTING_BASE_URL", "SUPPORT_DESK_BASE_URL", *CREDENTIALS,
            "ACCOUNTING_ENTITY_ID", "ACCOUNTING_TVA_RATE", "SUPPORT_DESK_MAILBOX_ID",
        }  # fmt: skip
        assert "Webhooks go to http://127.0.0.1:8080." in printed
        client = httpx2.Client(base_url=url, trust_env=False, transport=httpx2.HTTPTransport(retries=10))
        with client:
            assert client.get("/readyz").status_code == 200
            headers = {"authorization": f"Bearer {settings['CARD_SECRET_KEY']}"}
            assert client.get("/card/v1/prices", headers=headers).status_code == 200
        process.send_signal(signum)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_credential_of_the_environment_is_used_and_not_printed() -> None:
    environ = {"SOUNDMARK_CARD_SECRET_KEY": "sk_test_of_the_environment", "SOUNDMARK_BASE_URL": "http://127.0.0.1:8181"}
    with running("--port", "0", environ=environ) as process:
        printed = read_until(process, "MAILBOX_ID")
        assert "sk_test_of_the_environment" not in printed
        assert "http://127.0.0.1:8181" in printed
        (url,) = re.findall(r"CARD_API_URL=(\S+)", printed)
        client = httpx2.Client(trust_env=False, transport=httpx2.HTTPTransport(retries=10))
        with client:
            headers = {"authorization": "Bearer sk_test_of_the_environment"}
            assert client.get(f"{url}/v1/prices", headers=headers).status_code == 200


def test_a_port_that_is_taken_is_refused_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with running("--port", str(taken.getsockname()[1])) as process:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 1
            (line,) = errors.splitlines()
            assert "is in use by another program; choose another port with --port" in line


def test_there_is_no_way_to_listen_for_other_machines() -> None:
    """It has no login, and its credentials are printed."""
    with running("--host", "192.0.2.1") as process:
        process.communicate(timeout=60)
        assert process.returncode == 2


def test_every_setting_that_it_names_is_one_of_core() -> None:
    """The worker needs them all as well."""
    options = SandboxOptions("", choose_credentials({}, SystemEntropy()))
    named = {name.lower() for name in settings_for_core("http://127.0.0.1:8090", options)}
    assert named <= set(CoreSettings.model_fields) & set(CoreJobsSettings.model_fields)
