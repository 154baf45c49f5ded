"""`soundmark audit verify-download`: the owner of an audit log checks it, without any key of the service."""

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.log.integration.opening import renew_log
from soundmark.core.features.tenancy.audit_log.heads import log_heads

from .conftest import Done, Service, run


def verify(file: Path, *arguments: str) -> Done:
    return run("audit", "verify-download", str(file), *arguments)


@pytest.fixture
def download(service: Service, tmp_path: Path) -> Path:
    """The audit log of an organisation with three entries, which are chained."""
    query = {"organization_id": service.make_code()["organization_id"]}
    wait_for_chain(service, query)
    file = tmp_path / "audit-log.ndjson"
    answer = service.client.get("/v1/audit-log", params=query, headers={"accept": "application/x-ndjson"})
    file.write_bytes(answer.raise_for_status().content)
    return file


def wait_for_chain(service: Service, query: dict[str, str]) -> Any:
    """Wait until every entry has its place; return what the service says of them."""
    while (found := service.client.get("/v1/audit-log/verification", params=query).json())["unsealed"]:
        time.sleep(0.05)
    return found


async def integrate_heads(service: Service, *, renew: bool = True) -> None:
    """Do what the worker does within two minutes, on a log of its own, or a minute later on the same."""
    clock = FakeClock()
    clock.advance(minutes=0 if renew else 1)
    async with make_worker(service.database_url, clock) as ctx:
        if renew:
            await renew_log(ctx, "core.test/v1/log")
        await log_heads(ctx)
        await LogIntegrator(ctx).integrate_once()


def entries_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file: Path, entries: list[Any]) -> None:
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))


async def test_a_whole_download_is_verified_with_the_log(service: Service, download: Path) -> None:
    await integrate_heads(service)
    own_claim = verify(download, "--base-url", service.url)
    assert own_claim.status == 0, own_claim.err
    assert "3 entries, 0 of them below no head in the log yet" in own_claim.out
    vkey = service.client.get("/v1/log").json()["vkeys"][0]
    assert vkey in own_claim.err
    pinned = verify(download, "--base-url", service.url, "--vkey", vkey, "--json")
    assert (pinned.status, pinned.err) == (0, "")
    assert json.loads(pinned.out) == {"entries": 3, "unchained": 0, "covered": 3}


async def test_without_a_head_in_the_log_only_the_chain_is_verified(service: Service, download: Path) -> None:
    assert "has no head of it" in verify(download, "--base-url", service.url).err
    offline = verify(download, "--offline")
    assert (offline.status, offline.err) == (0, "")
    assert "3 entries, not compared with the log" in offline.out
    assert "Nothing answers" in verify(download, "--base-url", "http://127.0.0.1:9").refusal


async def test_a_chain_that_was_made_anew_is_found_with_the_log(service: Service, download: Path) -> None:
    """The operator of the service can chain other entries; the log knows the head of the first ones."""
    await integrate_heads(service)
    previous, chained = bytes(32), []
    for entry in reversed(entries_of(download)):
        other = {name: value for name, value in entry.items() if name != "chain_hash"} | {"action": "project.updated"}
        previous = hashlib.sha256(previous + rfc8785.dumps(other)).digest()
        chained.append({**other, "chain_hash": base64.urlsafe_b64encode(previous).decode().rstrip("=")})
    write(download, chained)
    assert verify(download, "--offline").status == 0, "as a chain, it is whole"
    cut = verify(download, "--base-url", service.url)
    assert (cut.status, "has no head of it" in cut.err) == (1, True)


async def test_an_end_that_was_cut_off_shows_by_its_number_alone(service: Service, download: Path) -> None:
    """An older head covers what is left, so docs/trust.md says with what to compare it."""
    await integrate_heads(service)
    query = {"organization_id": entries_of(download)[0]["organization_id"]}
    service.client.post("/v1/projects", json={**query, "name": "Evening show"}).raise_for_status()
    wait_for_chain(service, query)
    await integrate_heads(service, renew=False)
    cut = verify(download, "--base-url", service.url, "--json")
    assert (cut.status, json.loads(cut.out)["covered"]) == (0, 3)
    assert wait_for_chain(service, query)["logged_head"]["entries"] == 4


def test_the_first_fault_is_named(download: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    entries = entries_of(download)
    faults: dict[str, list[Any]] = {
        f"position 2 is not what was chained there. ({entries[1]['id']})": [
            entries[0],
            {**entries[1], "actor": {"type": "user", "id": "somebody else"}},
            entries[2],
        ],
        "position 2 is missing": [entries[0], entries[2]],
        "Line 2 is not an entry": [entries[0], {}],
    }
    for fault, altered in faults.items():
        file = tmp_path / "altered.ndjson"
        write(file, altered)
        with subtests.test(fault):
            assert fault in verify(file, "--offline").refusal


def test_wrong_usage(download: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for options in (["--offline"], ["--base-url", "http://127.0.0.1:9"]):
        assert verify(nothing, *options).refusal == f"{nothing} cannot be read: No such file or directory"
    assert verify(download, "--offline", "--vkey", "x").status == 2
    wrong = verify(download, "--base-url", "http://127.0.0.1:9", "--vkey", "nonsense")
    assert wrong.status == 2
    assert "vkey" in wrong.err
    assert verify(download, "--offline", "--data-dir", str(tmp_path)).status == 2
    assert "up.json" in verify(download, "--data-dir", str(tmp_path)).refusal
