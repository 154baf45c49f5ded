"""Rendering an audio bundle: a component that fails, limits of time and size, and room in its queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import IO, Any, cast

import pytest
from support.api.core_settings import AUDIO_CREDENTIAL, core_settings
from support.codes.bundles import make_codes, open_bundle, refused, request_bundle
from support.database.rival import Rival
from support.outside.misbehaving_server import Behaviour, MisbehavingServer, answer, misbehaving_server, raw, silent
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.channel.audio import AudioChannel
from soundmark.core.features.codes.code_audio import bundle
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateResponse

MIB = 1024 * 1024


def wav(size_bytes: int = 44) -> bytes:
    """Return bytes that pass for a WAV of this size."""
    return b"RIFF" + bytes(4) + b"WAVE" + bytes(size_bytes - 12)


def sounding(size_bytes: int = 44) -> Behaviour:
    return answer(wav(size_bytes), media_type="audio/wav")


@asynccontextmanager
async def tenant_of_core_with(
    behave: Behaviour, database_url: Secret, **changes: Any
) -> AsyncIterator[tuple[Tenant, MisbehavingServer]]:
    """Yield a tenant of a Core whose audio component behaves like this."""
    async with misbehaving_server(behave) as audio:
        settings = core_settings(database_url, audio_url=audio.url, audio_credential=AUDIO_CREDENTIAL, **changes)
        async with running_core(settings) as api:
            yield await make_tenant(api), audio


def answer_wavs_then(count: int, then: Behaviour) -> Behaviour:
    """Return a behaviour that answers `count` WAVs and then behaves as `then`."""
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
        answer(b'{"code":"deadline_passed"}', status="503 Service Unavailable"),
        answer(b"<html>", media_type="text/html"),
        silent,
    ],
    ids=["hangs up", "hangs up in a WAV", "is late", "answers a page", "falls silent"],
)
async def test_a_component_that_fails_in_the_middle_ends_the_bundle(
    database_url: Secret, bundle_files: list[IO[bytes]], then: Behaviour
) -> None:
    """Nothing of what was rendered is sent, and nothing more is requested."""
    # A good answer gets its time on a busy machine; silence is not awaited that long.
    timeout_s = "3" if then is silent else "30"
    async with tenant_of_core_with(answer_wavs_then(10, then), database_url, private_timeout_s=timeout_s) as (
        tenant,
        audio,
    ):
        bundled = await request_bundle(tenant, await make_codes(tenant, 100))
        assert refused(bundled) == (503, "audio_unavailable")
        assert 10 < len(audio.requests) <= 14
    assert [file.closed for file in bundle_files] == [True]


async def test_without_an_audio_component_there_is_no_bundle(
    database_url: Secret, bundle_files: list[IO[bytes]]
) -> None:
    async with running_core(core_settings(database_url)) as api:
        tenant = await make_tenant(api)
        assert refused(await request_bundle(tenant, await make_codes(tenant, 5))) == (503, "audio_unavailable")
    assert [file.closed for file in bundle_files] == [True]


async def test_an_endless_rendering_is_cut_off(
    database_url: Secret, bundle_files: list[IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call meets its own deadline, but all of them together exceed that of a bundle."""
    monkeypatch.setattr(bundle, "RENDERING_S_MAX", 0.3)
    async with tenant_of_core_with(silent, database_url, private_timeout_s="5") as (tenant, _):
        bundled = await request_bundle(tenant, await make_codes(tenant, 5))
        assert refused(bundled) == (503, "audio_unavailable")
    assert [file.closed for file in bundle_files] == [True]


@pytest.mark.parametrize(("count", "status"), [(8, 200), (9, 422), (100, 422)])
async def test_the_wavs_together_are_at_most_64_mib(
    database_url: Secret, bundle_files: list[IO[bytes]], count: int, status: int
) -> None:
    """Checked as they arrive: of a hundred, only a few are fetched. Exactly 64 MiB is allowed."""
    async with tenant_of_core_with(sounding(8 * MIB), database_url, private_timeout_s="20") as (tenant, audio):
        bundled = await request_bundle(tenant, await make_codes(tenant, count))
        assert bundled.status == status
        if status == 422:
            assert bundled.code == "audio_bundle_too_large"
        else:
            assert sum(entry.file_size for entry in open_bundle(bundled).infolist()) == 64 * MIB
        assert len(audio.requests) <= 13
    assert [file.closed for file in bundle_files] == [True]


FRAME = "XRC1:brd_aZ09-_bY18-_cX27"


class Withholding:
    """A private channel that answers only when it is allowed to, and counts its waiting callers."""

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


async def run_until_all_wait() -> None:
    """Let every task run until it waits for an event."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("rows_count", "waiting_count"), [(1, 4), (4, 16), (5, 16), (20, 16)])
async def test_bundles_leave_room_for_single_sounds(rows_count: int, waiting_count: int) -> None:
    """One bundle asks for four WAVs at once, all together for sixteen; the others wait for their turn."""
    channel = Withholding()
    audio = AudioChannel(cast("PrivateChannel", channel))

    async def take() -> int:
        async with aclosing(audio.render_row([FRAME] * 10, 4, request_id="x")) as wavs:
            return len([wav async for wav in wavs])

    taking = [asyncio.create_task(take()) for _ in range(rows_count)]
    await run_until_all_wait()
    assert channel.waiting_count == waiting_count
    channel.may_answer.set()
    assert await asyncio.gather(*taking) == [10] * rows_count


async def test_a_reader_that_stops_requests_no_more() -> None:
    """WAVs that are being rendered ahead are cancelled."""
    channel = Withholding()
    audio = AudioChannel(cast("PrivateChannel", channel))
    channel.may_answer.set()
    async with aclosing(audio.render_row([FRAME] * 10, 4, request_id="x")) as wavs:
        await anext(wavs)
        channel.may_answer.clear()
        await anext(wavs)
        await run_until_all_wait()
        assert channel.waiting_count == 1
    assert channel.waiting_count == 0


async def test_no_transaction_is_open_during_rendering(database_url: Secret, rival: Rival) -> None:
    """A slow component holds no lock and no snapshot."""
    requested = asyncio.Event()
    go_on = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requested.set()
        await go_on.wait()
        await sounding()(reader, writer)

    async with tenant_of_core_with(behave, database_url, private_timeout_s="20") as (tenant, _):
        bundling = asyncio.create_task(request_bundle(tenant, await make_codes(tenant, 2)))
        await requested.wait()
        async with rival.holding("LOCK TABLE codes, broadcasts, members, projects IN ACCESS EXCLUSIVE MODE NOWAIT"):
            go_on.set()
        assert (await bundling).status == 200
