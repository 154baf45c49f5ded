"""`soundmark platform release-readiness`: what the API answers, and what is missing."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.release_evidence import GATES, PREVIEW, STABLE, insert_evidence, make_evidence

from soundmark.kit.crypto.secret import Secret

from .conftest import Done, run


@pytest.fixture
def settings(api: Api, database_url: Secret) -> dict[str, str]:
    """The settings of the commands under test."""
    assert api is not None, "the database is migrated and empty"
    return {"CORE_DATABASE_URL": database_url.reveal()}


async def show(settings: dict[str, str], *more: str) -> Done:
    return await asyncio.to_thread(run, "platform", "release-readiness", *more, settings=settings)


async def test_it_says_which_gates_are_closed(api: Api, rival: Rival, settings: dict[str, str]) -> None:
    await insert_evidence(rival, datetime.now(UTC))
    shown = await show(settings)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.endswith("missing: ios acoustic\n")
    for part in (f"{PREVIEW['version']} ({PREVIEW['revision']})", "none yet"):
        assert part in shown.out
    as_json = await show(settings, "--json")
    assert json.loads(as_json.out) == (await api.get("/v1/platform/release-readiness")).json


async def test_it_says_that_nothing_is_missing(rival: Rival, settings: dict[str, str]) -> None:
    whole = json.dumps(make_evidence(gates=dict.fromkeys(GATES, True), stable=STABLE))
    await insert_evidence(rival, datetime.now(UTC), whole)
    shown = await show(settings)
    assert (shown.status, shown.out.splitlines()[-1]) == (0, "nothing is missing")
    assert STABLE["version"] in shown.out


async def test_it_says_why_nothing_is_known(rival: Rival, settings: dict[str, str]) -> None:
    assert "the worker has not looked" in (await show(settings)).refusal.replace("Core's", "the")
    await insert_evidence(rival, datetime.now(UTC) - timedelta(minutes=11))
    assert "more than ten minutes ago" in (await show(settings)).refusal
    await rival.run("UPDATE release_readiness SET computed_at = now(), evidence = NULL, finding = 'malformed'")
    assert (await show(settings, "--json")).refusal == (
        "the release readiness is unknown: the evidence file is malformed; docs/guides/operating.md shows its form"
    )
