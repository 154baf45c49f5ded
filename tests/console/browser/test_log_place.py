"""The place of a Code in the transparency log, as its page verifies it in a browser: each thing that it may find."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, Route, expect
from support.api.core_client import Api
from support.browser.accessibility import find_broken_rules
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.log.witnesses import running_witnesses
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.state import Transparency
from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.log.integration.opening import open_log
from soundmark.kit.crypto.secret import Secret

pytestmark = pytest.mark.xdist_group("browser")

Answer = Callable[[Route], Awaitable[None]]
LOG = re.compile(r"/v1/log$")
PROOFS = re.compile(r"/v1/log/proofs/")
FOREIGN_VKEY = json.loads(
    (Path(__file__).parents[3] / "docs/vectors/transparency-log-v1.json").read_text(encoding="utf-8")
)["log"]["vkey"]


@pytest.fixture
async def ctx(api: Api, database_url: Secret, clock: FakeClock, rival: Rival) -> AsyncIterator[Context]:
    """The context of a worker, on a log that has just been made."""
    assert api is not None, "it makes the schema"
    await rival.run("TRUNCATE log_state, log_keys, log_leaves, log_tiles, log_checkpoints, log_queue")
    async with make_worker(database_url, clock) as context:
        await open_log(context)
        yield context


@pytest.fixture
def integrator(ctx: Context) -> LogIntegrator:
    """What lets waiting entries enter the log when a test says so."""
    return LogIntegrator(ctx)


async def look(served: ServedConsole, path: str, clock: FakeClock, **routes: Answer) -> Page:
    """Open a Code's page and its fold, with other answers to some requests to the log."""
    served.browsing.tolerate("status of (404|409)")  # What is not in the log yet; the sound of what was just revoked.
    page = await served.open(path, clock.now())
    for name, answer in routes.items():
        await page.route(LOG if name == "log" else PROOFS, answer)
    await page.click("#log-place summary")
    return page


def fact(page: Page, name: str) -> Any:
    return page.locator(f"#log-place [data-fact={name}]")


def answering(status: int, body: bytes = b"") -> Answer:
    async def answer(route: Route) -> None:
        await route.fulfill(status=status, body=body, headers={"access-control-allow-origin": "*"})

    return answer


def changing(change: Callable[[bytes], bytes]) -> Answer:
    async def answer(route: Route) -> None:
        fetched = await route.fetch()
        await route.fulfill(response=fetched, body=change(await fetched.body()))

    return answer


async def expect_state(page: Page, state: str, words: str) -> None:
    await expect(page.locator("#log-place")).to_have_attribute("data-state", state)
    await expect(page.locator("#log-place [role=status] p:visible")).to_have_count(1)
    await expect(page.locator("#log-place [role=status] p:visible")).to_contain_text(words)
    await expect(page.locator("#log-place [data-facts]")).to_be_visible(visible=state == "verified")


async def test_a_code_and_its_revocation_are_found_and_verified(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator, rival: Rival
) -> None:
    code = await tenant.make_code(intent={"type": "o\u202epen", "action": "x", "resource": {"a": [1.5, "\u0000"]}})
    await integrator.integrate_once()
    stored = await StoredLog.read(rival)
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "verified", "The log has this Code. This browser verified it.")
    await expect(fact(page, "index")).to_have_text("2")
    await expect(fact(page, "size")).to_have_text("3")
    await expect(fact(page, "time")).not_to_have_text("unknown")
    await expect(fact(page, "witnesses")).to_contain_text("none: nobody else confirms")
    await expect(fact(page, "keys")).to_have_text(stored.vkey)

    await tenant.revoke(code["xr_id"])
    await integrator.integrate_once()
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "verified", "The log has this Code.")
    await expect(fact(page, "revoked")).to_have_text("3")


async def test_the_witnesses_that_cosigned_are_named(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, ctx: Context, rival: Rival, tmp_path: Path
) -> None:
    code = await tenant.make_code()
    stored = await StoredLog.read(rival)
    with running_witnesses(tmp_path, 2) as [witness, absent]:
        witness.know(stored.origin, stored.vkey)
        transparency = Transparency(stored.origin, (witness.ours,), quorum=1)
        integrator = LogIntegrator(replace(ctx, transparency=transparency))
        await integrator.integrate_once()
        await integrator.ask_once()
        await integrator.finish_asking()
        configured = [{"name": each.ours.key.name, "vkey": str(each.ours.key)} for each in (witness, absent)]

    def configure(body: bytes) -> bytes:
        return json.dumps({**json.loads(body), "witnesses": configured}).encode()

    page = await look(served, f"{codes}/{code['xr_id']}", clock, log=changing(configure))

    await expect_state(page, "verified", "The log has this Code.")
    await expect(fact(page, "witnesses")).to_have_text(re.compile(r"^witness-1\.example, [^\n]*:\d\d:\d\d[^\n]*$"))


async def test_a_code_that_has_just_been_issued_is_waited_for(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator
) -> None:
    code = await tenant.make_code()
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "waiting", "The log does not have this yet.")

    await integrator.integrate_once()

    await expect_state(page, "verified", "The log has this Code.")


async def test_what_is_missing_for_longer_is_said_to_be_missing(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator, rival: Rival
) -> None:
    """A Code, and the revocation of one that is there."""
    assert integrator is not None, "it makes the log"
    code = await tenant.make_code()
    clock.advance(seconds=61)
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "absent", "The log does not have this Code, or not its revocation.")

    await integrator.integrate_once()
    await tenant.revoke(code["xr_id"])
    clock.advance(seconds=61)
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "absent", "or not its revocation")

    await rival.run("UPDATE log_state SET stopped_reason = 'witness_conflict'")
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "stopped", "it has stopped growing")


async def test_a_proof_that_does_not_hold_is_a_contradiction(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator
) -> None:
    code = await tenant.make_code()
    await tenant.make_code()
    await integrator.integrate_once()
    for routes in (
        {"proofs": changing(lambda proof: re.sub(rb"(?<=\nindex )[23]", lambda at: b"%d" % (5 - int(at[0])), proof))},
        {"proofs": answering(200, b"no proof")},
        {"log": changing(lambda log: json.dumps({**json.loads(log), "vkeys": [FOREIGN_VKEY]}).encode())},
    ):
        page = await look(served, f"{codes}/{code['xr_id']}", clock, **routes)
        await expect_state(page, "contradicts", "The proof does not hold")


async def test_what_could_not_be_read_is_neither_good_nor_bad(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator
) -> None:
    code = await tenant.make_code()
    await integrator.integrate_once()
    served.browsing.tolerate("status of (429|503)|ERR_FAILED|Failed to load")

    async def cut(route: Route) -> None:
        await route.abort()

    for routes, state, words in (
        ({"log": answering(404)}, "unconfigured", "This service has no public log."),
        ({"log": answering(503)}, "unchecked", "nothing was checked"),
        ({"log": answering(200, b"{}")}, "unchecked", "nothing was checked"),
        ({"proofs": answering(429)}, "unchecked", "nothing was checked"),
        ({"proofs": cut}, "unchecked", "nothing was checked"),
    ):
        page = await look(served, f"{codes}/{code['xr_id']}", clock, **routes)
        await expect_state(page, state, words)


async def test_the_open_fold_breaks_no_rule(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, integrator: LogIntegrator
) -> None:
    code = await tenant.make_code()
    await integrator.integrate_once()
    page = await look(served, f"{codes}/{code['xr_id']}", clock)
    await expect_state(page, "verified", "The log has this Code.")
    assert await find_broken_rules(page) == {}
