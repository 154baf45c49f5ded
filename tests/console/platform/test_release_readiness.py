"""The readiness of the SDK's release."""

import json

from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.release_evidence import PREVIEW, STABLE, insert_evidence, make_evidence

PATH = "/platform/readiness"


async def test_the_gates_of_a_preview_are_shown(operator: ConsoleClient, rival: Rival, clock: FakeClock) -> None:
    await insert_evidence(rival, clock.now())

    page = await operator.get(PATH)

    assert PREVIEW["version"] in page.text
    assert PREVIEW["revision"] in page.text
    gates = {row.findtext("./th"): row.findtext("./td") for row in page.find_all(".//tbody/tr")}
    assert gates["An iOS device heard a Code"] == "no"
    assert [*gates.values()].count("yes") == 4


async def test_a_stable_release_is_shown(operator: ConsoleClient, rival: Rival, clock: FakeClock) -> None:
    gates = dict.fromkeys(make_evidence()["gates"], True)
    await insert_evidence(rival, clock.now(), json.dumps(make_evidence(gates=gates, stable=STABLE)))

    assert STABLE["version"] in (await operator.get(PATH)).text


async def test_evidence_that_is_missing_or_old_is_named_to_administrators(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    roles = {"realm_access": {"roles": ["svc_platform_admin"]}}
    missing = await visitors.sign_in_as(people, "root", clock.now(), **roles).get(PATH)
    await insert_evidence(rival, clock.now())
    clock.advance(minutes=11)
    old = await visitors.sign_in_as(people, "root", clock.now(), **roles).get(PATH)

    for page in (missing, old):
        assert (page.status, page.trouble) == (503, "release_readiness_unavailable")
        assert page.find(".//main//a[@class='button']").get("href") == PATH


async def test_an_operator_reads_that_nothing_is_collected_here(operator: ConsoleClient) -> None:
    page = await operator.get(PATH)

    assert (page.status, page.trouble) == (200, None)
    assert "Not collected here" in page.text
