"""`POST /v1/codes/audio-bundle`: a stored ZIP of active Codes, judged once more before its first byte."""

import asyncio
import io
import tempfile
import zipfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import IO, Any, cast

import pytest
from support.core_client import Answer, Api
from support.core_settings import AUDIO_CREDENTIAL, core_settings
from support.misbehaving_server import Behaviour, MisbehavingServer, answer, misbehaving_server, raw, silent
from support.people import People
from support.rival import Rival
from support.running_apps import running_core
from support.tenant import Tenant, make_tenant

from soundmark.core.channel.audio import AudioChannel
from soundmark.core.features.codes.code_audio import bundle
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.private_call import PrivateChannel, PrivateResponse
from soundmark.kit.text.timestamps import format_timestamp

PATH = "/v1/codes/audio-bundle"
UNKNOWN = "xr_" + "A" * 22
MIB = 1024 * 1024
# As the API does it: it locks the row against everybody who holds it before it changes it.
REVOKED_KEY = (
    "WITH held AS (SELECT id FROM api_keys FOR UPDATE)"
    " UPDATE api_keys k SET revoked_at = k.created_at FROM held WHERE k.id = held.id"
)


async def make_codes(tenant: Tenant, count: int, *, lifetime_s: float = 86400) -> list[str]:
    """The ids of new Codes, in no order."""
    expires_at = format_timestamp(tenant.api.clock.now() + timedelta(seconds=lifetime_s))
    body = tenant.code_body(count=count, expires_at=expires_at)
    issued = await tenant.api.post("/v1/codes/batch", json=body)
    assert issued.status == 201, issued.body
    return [code["xr_id"] for code in issued.json["data"]]


async def ask(tenant: Tenant, xr_ids: Any, **changes: Any) -> Answer:
    params = {**tenant.query, "project_id": tenant.project_id}
    return await tenant.api.post(PATH, params=params, json={"xr_ids": xr_ids, **changes})


def opened(bundled: Answer) -> zipfile.ZipFile:
    assert bundled.status == 200, bundled.body
    return zipfile.ZipFile(io.BytesIO(bundled.body))


def refused(answered: Answer) -> tuple[int, str]:
    return answered.status, answered.code


def pointers(answered: Answer) -> list[tuple[str, str]]:
    assert refused(answered) == (422, "validation_failed"), answered.body
    return [(error["location"], error["pointer"]) for error in answered.json["errors"]]


async def second_project(tenant: Tenant) -> Tenant:
    project_id = await tenant.api.make_project(tenant.organization_id, "Evening show")
    return Tenant(tenant.api, tenant.organization_id, project_id)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """Every temporary file that a bundle is written into."""
    made: list[IO[bytes]] = []
    make = tempfile.SpooledTemporaryFile

    def remembered(*args: Any, **options: Any) -> IO[bytes]:
        made.append(make(*args, **options))
        return made[-1]

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", remembered)
    return made


async def test_a_bundle_is_the_wavs_in_the_order_asked(tenant: Tenant, files: list[IO[bytes]]) -> None:
    """Each the very file that the Code alone is answered with, stored and not compressed."""
    selection = await make_codes(tenant, 7)
    selection.sort(key=lambda xr_id: xr_id[::-1])
    archive = opened(await ask(tenant, selection))
    assert archive.namelist() == [f"{xr_id}.wav" for xr_id in selection]
    assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    assert archive.testzip() is None
    for xr_id in selection:
        alone = await tenant.api.get(f"/v1/codes/{xr_id}/audio", params=tenant.query)
        assert archive.read(f"{xr_id}.wav") == alone.body
    assert [file.closed for file in files] == [True]


async def test_the_answer_is_a_file_that_nobody_keeps(tenant: Tenant) -> None:
    bundled = await ask(tenant, await make_codes(tenant, 2))
    assert bundled.headers["content-type"] == "application/zip"
    assert bundled.headers["content-disposition"] == f'attachment; filename="codes-{tenant.project_id}.zip"'
    assert bundled.headers["content-length"] == str(len(bundled.body))
    assert bundled.headers["cache-control"] == "no-store"


async def test_the_same_selection_is_the_same_bytes(api: Api, tenant: Tenant) -> None:
    """Whenever it is asked for: nothing of the moment, the machine or the Codes stands in the archive."""
    selection = await make_codes(tenant, 2)
    first = await ask(tenant, selection)
    api.clock.advance(hours=1)
    assert (await ask(tenant, selection)).body == first.body
    assert (await ask(tenant, selection[::-1])).body != first.body
    assert {(entry.date_time, entry.comment, entry.extra) for entry in opened(first).infolist()} == {
        ((1980, 1, 1, 0, 0, 0), b"", b"")
    }
    assert opened(first).comment == b""
    for told in (b"brd_", b"example.org", b"Radio"):
        assert told not in first.body


@pytest.mark.parametrize("protocol", [3, 4, 5])
async def test_the_requested_protocol_is_used(tenant: Tenant, protocol: int) -> None:
    (xr_id,) = await make_codes(tenant, 1)
    alone = await tenant.api.get(f"/v1/codes/{xr_id}/audio", params={**tenant.query, "protocol": protocol})
    assert opened(await ask(tenant, [xr_id], protocol=protocol)).read(f"{xr_id}.wav") == alone.body
    if protocol == 4:
        assert opened(await ask(tenant, [xr_id])).read(f"{xr_id}.wav") == alone.body


async def test_a_hundred_are_one_bundle(tenant: Tenant, files: list[IO[bytes]]) -> None:
    selection = await make_codes(tenant, 100)
    archive = opened(await ask(tenant, selection, protocol=5))
    assert archive.namelist() == [f"{xr_id}.wav" for xr_id in selection]
    assert [file.closed for file in files] == [True]


@pytest.mark.parametrize("protocol", [0, 1, 2, 6, "4", 4.5, None, True, [4], "fast"], ids=str)
async def test_another_protocol_is_refused(tenant: Tenant, protocol: Any) -> None:
    assert pointers(await ask(tenant, [UNKNOWN], protocol=protocol)) == [("body", "/protocol")]


@pytest.mark.parametrize(
    ("xr_ids", "pointer"),
    [
        ([], "/xr_ids"),
        ([UNKNOWN, UNKNOWN], "/xr_ids"),
        ([f"xr_{n:022}" for n in range(101)], "/xr_ids"),
        (None, "/xr_ids"),
        (UNKNOWN, "/xr_ids"),
        ([1], "/xr_ids/0"),
        (["x" * 161], "/xr_ids/0"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_is_no_selection_is_refused(tenant: Tenant, xr_ids: Any, pointer: str) -> None:
    assert pointers(await ask(tenant, xr_ids)) == [("body", pointer)]


async def test_the_body_is_closed_and_complete(tenant: Tenant) -> None:
    assert pointers(await ask(tenant, [UNKNOWN], project_id=tenant.project_id)) == [("body", "/project_id")]
    params = {**tenant.query, "project_id": tenant.project_id}
    assert pointers(await tenant.api.post(PATH, params=params, json={})) == [("body", "/xr_ids")]


async def test_organisation_and_project_stand_in_the_query(tenant: Tenant) -> None:
    body = {"xr_ids": [UNKNOWN]}
    assert pointers(await tenant.api.post(PATH, params=tenant.query, json=body)) == [("query", "/project_id")]
    headers = {"X-Svc-Organization-Id": tenant.organization_id}
    nowhere = await tenant.api.post(PATH, params={"project_id": tenant.project_id}, json=body, headers=headers)
    assert pointers(nowhere) == [("query", "/organization_id")]


@pytest.mark.parametrize("missing", [UNKNOWN, "xr_", "", "x", "xr_\0", "xr_ü", "../../etc/passwd", "xr_" + "A" * 157])
async def test_one_that_is_missing_is_no_bundle(tenant: Tenant, files: list[IO[bytes]], missing: str) -> None:
    selection = [*await make_codes(tenant, 1), missing]
    assert refused(await ask(tenant, selection)) == (404, "code_not_found")
    assert files == [], "nothing is rendered"


@pytest.mark.parametrize("of", ["another organisation", "another project"])
async def test_one_of_another_boundary_is_no_bundle(api: Api, tenant: Tenant, of: str) -> None:
    other = await make_tenant(api) if of == "another organisation" else await second_project(tenant)
    selection = [*await make_codes(tenant, 1), *await make_codes(other, 1)]
    for asking in (tenant, other):
        assert refused(await ask(asking, selection)) == (404, "code_not_found")


@pytest.mark.parametrize("project_id", ["prj_" + "A" * 22, "", "x", "prj_\0", "prj_ü", 'prj_"; x'])
async def test_a_project_that_is_not_there_is_not_found(tenant: Tenant, project_id: str) -> None:
    """Also one of another organisation of the caller's own."""
    selection = await make_codes(tenant, 1)
    asking = Tenant(tenant.api, tenant.organization_id, project_id)
    assert refused(await ask(asking, selection)) == (404, "project_not_found")
    other = await make_tenant(tenant.api)
    foreign = Tenant(tenant.api, tenant.organization_id, other.project_id)
    assert refused(await ask(foreign, selection)) == (404, "project_not_found")


async def test_one_expired_code_among_a_hundred_is_no_bundle(api: Api, tenant: Tenant, files: list[IO[bytes]]) -> None:
    """To the millisecond; until then all of them are one."""
    api.clock.freeze()
    selection = await make_codes(tenant, 99)
    selection[77:77] = await make_codes(tenant, 1, lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert len(opened(await ask(tenant, selection, protocol=5)).namelist()) == 100
    api.clock.advance(seconds=0.001)
    assert refused(await ask(tenant, selection)) == (409, "code_not_active")
    assert len(files) == 1, "nothing is rendered"


async def test_a_revoked_code_is_no_bundle(api: Api, tenant: Tenant) -> None:
    """Neither before nor after its own time is over."""
    selection = await make_codes(tenant, 2, lifetime_s=60)
    await tenant.revoke(selection[1])
    for seconds in (0, 61):
        api.clock.advance(seconds=seconds)
        assert refused(await ask(tenant, selection)) == (409, "code_not_active")


async def test_missing_codes_are_reported_before_inactive_ones(tenant: Tenant) -> None:
    selection = await make_codes(tenant, 1)
    await tenant.revoke(selection[0])
    assert refused(await ask(tenant, [*selection, UNKNOWN])) == (404, "code_not_found")


async def test_a_code_that_does_not_verify_is_not_there(tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 3)
    await rival.run(
        "UPDATE broadcasts SET signature = sha512(signature) WHERE token ="
        " (SELECT broadcast_token FROM codes WHERE xr_id = %s)",
        selection[1],
    )
    assert refused(await ask(tenant, selection)) == (404, "code_not_found")


async def test_a_caller_who_may_read_codes_may_bundle_them(people: People, rival: Rival) -> None:
    tenant = await people.tenant_of("owner")
    selection = await make_codes(tenant, 1)
    other = await second_project(tenant)
    for role, status in (("admin", 200), ("member", 200), ("billing", 403)):
        assert (await ask(await people.member(tenant, rival, role, role), selection)).status == status
    assert (await ask(tenant.with_key(await tenant.make_key(scopes=["codes:read"])), selection)).status == 200
    writer = tenant.with_key(await tenant.make_key(scopes=["codes:write"]))
    assert refused(await ask(writer, selection)) == (403, "insufficient_scope")
    elsewhere = tenant.with_key(await other.make_key(scopes=["codes:read"]))
    assert refused(await ask(elsewhere, selection)) == (404, "project_not_found")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE codes SET revoked_at = issued_at WHERE xr_id = %s", (409, "code_not_active")),
        ("DELETE FROM codes WHERE xr_id = %s", (404, "code_not_found")),
        (
            "UPDATE codes c SET project_id = p.id FROM projects p WHERE p.id <> c.project_id AND c.xr_id = %s",
            (404, "code_not_found"),
        ),
        ("DELETE FROM projects WHERE id = (SELECT project_id FROM codes WHERE xr_id = %s)", (404, "project_not_found")),
    ],
    ids=["revoked", "deleted", "moved", "project deleted"],
)
async def test_what_becomes_of_the_selection_while_it_is_rendered_counts(
    tenant: Tenant, rival: Rival, files: list[IO[bytes]], change: str, problem: tuple[int, str]
) -> None:
    """Somebody holds the caller's row, so the finished bundle waits to be judged once more."""
    await second_project(tenant)
    selection = await make_codes(tenant, 3)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(ask(tenant, selection))
        assert [file.closed for file in files] == [False], "it is rendered"
        await rival.run(change, selection[1])
    assert refused(await bundling) == problem
    assert [file.closed for file in files] == [True]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE members SET role = 'billing'", (403, "forbidden")),
        ("DELETE FROM members", (404, "organization_not_found")),
    ],
    ids=["demoted", "removed"],
)
async def test_what_becomes_of_the_caller_while_it_is_rendered_counts(
    tenant: Tenant, rival: Rival, files: list[IO[bytes]], change: str, problem: tuple[int, str]
) -> None:
    selection = await make_codes(tenant, 3)
    async with rival.committing(change):
        bundling = await rival.while_waiting(ask(tenant, selection))
        assert [file.closed for file in files] == [False], "it is rendered"
    assert refused(await bundling) == problem
    assert [file.closed for file in files] == [True]


async def test_a_code_that_expires_while_it_is_rendered_is_no_bundle(
    api: Api, tenant: Tenant, rival: Rival, files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2, lifetime_s=60)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(ask(tenant, selection))
        api.clock.advance(seconds=60)
    assert refused(await bundling) == (409, "code_not_active")
    assert [file.closed for file in files] == [True]


async def test_a_key_that_is_revoked_while_it_is_rendered_gets_no_bundle(
    tenant: Tenant, rival: Rival, files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2)
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert (await ask(server, selection)).status == 200  # And that it was used is noted.
    async with rival.committing(REVOKED_KEY):
        bundling = await rival.while_waiting(ask(server, selection))
        assert not files[-1].closed, "it is rendered"
    assert refused(await bundling) == (401, "unauthenticated")
    assert all(file.closed for file in files)


async def test_a_database_that_goes_while_it_is_rendered_is_no_bundle(
    tenant: Tenant, rival: Rival, files: list[IO[bytes]]
) -> None:
    selection = await make_codes(tenant, 2)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        bundling = await rival.while_waiting(ask(tenant, selection))
        await rival.kill_waiting_sessions()
        assert refused(await bundling) == (503, "database_unavailable")
    assert [file.closed for file in files] == [True]


def wav(size_bytes: int = 44) -> bytes:
    """What passes for a WAV of this size."""
    return b"RIFF" + bytes(4) + b"WAVE" + bytes(size_bytes - 12)


def sounding(size_bytes: int = 44) -> Behaviour:
    return answer(wav(size_bytes), media_type="audio/wav")


@asynccontextmanager
async def tenant_of_core_with(
    behave: Behaviour, database_url: Secret, **changes: Any
) -> AsyncIterator[tuple[Tenant, MisbehavingServer]]:
    """A tenant of a Core whose audio component does this."""
    async with misbehaving_server(behave) as audio:
        settings = core_settings(database_url, audio_url=audio.url, audio_credential=AUDIO_CREDENTIAL, **changes)
        async with running_core(settings) as api:
            yield await make_tenant(api), audio


def after(count: int, then: Behaviour) -> Behaviour:
    """Answers WAVs, and does something else from then on."""
    answered = 0

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        answered += 1
        await (sounding() if answered <= count else then)(reader, writer)

    return behave


@pytest.mark.parametrize(
    "then",
    [
        raw(b""),
        raw(b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: 44\r\n\r\nRIFF"),
        answer(b'{"code":"audio_busy"}', status="503 Service Unavailable"),
        answer(b"<html>", media_type="text/html"),
        silent,
    ],
    ids=["hangs up", "hangs up in a WAV", "is busy", "answers a page", "falls silent"],
)
async def test_a_component_that_fails_in_the_middle_is_no_bundle(
    database_url: Secret, files: list[IO[bytes]], then: Behaviour
) -> None:
    """Nothing of what was rendered is given away, and nothing more is asked."""
    # A good answer has its time on a busy machine; silence is not waited for that long.
    timeout_s = "3" if then is silent else "30"
    async with tenant_of_core_with(after(10, then), database_url, private_timeout_s=timeout_s) as (tenant, audio):
        bundled = await ask(tenant, await make_codes(tenant, 100))
        assert refused(bundled) == (503, "audio_unavailable")
        assert 10 < len(audio.requests) <= 14
    assert [file.closed for file in files] == [True]


async def test_a_component_that_is_not_there_is_no_bundle(database_url: Secret, files: list[IO[bytes]]) -> None:
    async with running_core(core_settings(database_url)) as api:
        tenant = await make_tenant(api)
        assert refused(await ask(tenant, await make_codes(tenant, 5))) == (503, "audio_unavailable")
    assert [file.closed for file in files] == [True]


async def test_a_rendering_without_end_has_one(
    database_url: Secret, files: list[IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call within its own deadline, all of them together beyond that of a bundle."""
    monkeypatch.setattr(bundle, "RENDERING_S_MAX", 0.3)
    async with tenant_of_core_with(silent, database_url, private_timeout_s="5") as (tenant, _):
        bundled = await ask(tenant, await make_codes(tenant, 5))
        assert refused(bundled) == (503, "audio_unavailable")
    assert [file.closed for file in files] == [True]


@pytest.mark.parametrize(("count", "status"), [(8, 200), (9, 422), (100, 422)])
async def test_the_wavs_together_are_at_most_64_mib(
    database_url: Secret, files: list[IO[bytes]], count: int, status: int
) -> None:
    """Judged while they arrive: of a hundred, few are fetched. Exactly so much is not too much."""
    async with tenant_of_core_with(sounding(8 * MIB), database_url, private_timeout_s="20") as (tenant, audio):
        bundled = await ask(tenant, await make_codes(tenant, count))
        assert bundled.status == status
        if status == 422:
            assert bundled.code == "audio_bundle_too_large"
        else:
            assert sum(entry.file_size for entry in opened(bundled).infolist()) == 64 * MIB
        assert len(audio.requests) <= 13
    assert [file.closed for file in files] == [True]


FRAME = "XRC1:brd_aZ09-_bY18-_cX27"


class Withholding:
    """A private channel that answers nobody before it may, and knows how many wait."""

    def __init__(self) -> None:
        self.waiting_count = 0
        self.may_answer = asyncio.Event()

    async def fetch(self, *_: Any) -> PrivateResponse:
        self.waiting_count += 1
        try:
            await self.may_answer.wait()
        finally:
            self.waiting_count -= 1
        return PrivateResponse(200, "audio/wav", wav())


async def everybody_as_far_as_they_can() -> None:
    """Whoever does not wait for what does not happen has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("rows_count", "waiting_count"), [(1, 4), (4, 16), (5, 16), (20, 16)])
async def test_bundles_leave_room_in_the_components_queue(rows_count: int, waiting_count: int) -> None:
    """One asks for four WAVs at once, all together for sixteen; the others wait for their turn."""
    channel = Withholding()
    audio = AudioChannel(cast("PrivateChannel", channel))

    async def take() -> int:
        async with aclosing(audio.render_row([FRAME] * 10, 4, request_id="x")) as wavs:
            return len([wav async for wav in wavs])

    taking = [asyncio.create_task(take()) for _ in range(rows_count)]
    await everybody_as_far_as_they_can()
    assert channel.waiting_count == waiting_count
    channel.may_answer.set()
    assert await asyncio.gather(*taking) == [10] * rows_count


async def test_who_takes_no_more_asks_for_no_more() -> None:
    """What is being rendered ahead is called off."""
    channel = Withholding()
    audio = AudioChannel(cast("PrivateChannel", channel))
    channel.may_answer.set()
    async with aclosing(audio.render_row([FRAME] * 10, 4, request_id="x")) as wavs:
        await anext(wavs)
        channel.may_answer.clear()
        await anext(wavs)
        await everybody_as_far_as_they_can()
        assert channel.waiting_count == 1
    assert channel.waiting_count == 0


async def test_no_transaction_is_open_while_it_is_rendered(database_url: Secret, rival: Rival) -> None:
    """A slow component holds no lock and no snapshot."""
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go_on.wait()
        await sounding()(reader, writer)

    async with tenant_of_core_with(behave, database_url, private_timeout_s="20") as (tenant, _):
        bundling = asyncio.create_task(ask(tenant, await make_codes(tenant, 2)))
        await asked.wait()
        async with rival.holding("LOCK TABLE codes, broadcasts, members, projects IN ACCESS EXCLUSIVE MODE NOWAIT"):
            go_on.set()
        assert (await bundling).status == 200
