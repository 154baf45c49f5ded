"""The origin of the log: from a setting or the base URL, and fixed when the log is made."""

from dataclasses import replace

import pytest
from support.api.core_settings import core_settings, jobs_settings
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.processes.running_apps import running_core

from soundmark.core.context import Context
from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.log.integration.opening import open_log
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret

from .test_integration import queue_entries

ELSEWHERE = "https://moved.example:8443/codes"


@pytest.mark.parametrize(
    ("base_url", "origin"),
    [
        ("https://codes.example", "codes.example/v1/log"),
        ("https://codes.example/", "codes.example/v1/log"),
        ("https://Codes.Example:8443/", "codes.example:8443/v1/log"),
        ("https://CODES.example/Sound/Marks/", "codes.example/sound/marks/v1/log"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080/v1/log"),
    ],
)
def test_without_a_setting_it_is_the_base_url_without_scheme_in_lower_case(
    database_url: Secret, base_url: str, origin: str
) -> None:
    """Of a path nothing is lost: C2SP names a log after the prefix of its URLs."""
    assert make_job_context(jobs_settings(database_url, BASE_URL=base_url)).transparency.origin == origin


def test_a_setting_is_taken_as_it_stands(database_url: Secret) -> None:
    settings = jobs_settings(database_url, BASE_URL=ELSEWHERE, TRANSPARENCY_ORIGIN="Radio.example/Log")
    assert make_job_context(settings).transparency.origin == "Radio.example/Log"


async def test_another_base_url_or_setting_changes_no_log_that_was_made(
    ctx: Context, stored: StoredLog, rival: Rival, database_url: Secret
) -> None:
    """Witnesses and pinned keys know it by the first."""
    for changes in ({"BASE_URL": ELSEWHERE}, {"TRANSPARENCY_ORIGIN": "radio.example/log"}):
        moved = replace(ctx, transparency=make_job_context(jobs_settings(database_url, **changes)).transparency)
        assert moved.transparency.origin != stored.origin
        await open_log(moved)
        await queue_entries(rival, 1, str(changes))
        assert await LogIntegrator(moved).integrate_once() == 1
    assert await stored.audit() == 4, "signed by the first key, under the first origin"
    async with running_core(core_settings(database_url, base_url=ELSEWHERE), ctx.clock) as core:  # type: ignore[arg-type]  # The clock of tests.
        view = (await core.get("/v1/log")).json
        checkpoint = (await core.get("/v1/log/checkpoint")).body
    assert (view["origin"], view["vkeys"], view["size"]) == (stored.origin, [stored.vkey], 4)
    assert checkpoint.startswith(f"{stored.origin}\n4\n".encode())
