"""Where signing keys come from and how they are stored."""

import asyncio
import base64
import contextlib

import pytest
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core

from soundmark.core.features.codes.signing_keys import service
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SEED_BYTES, SigningKey
from soundmark.kit.http.server.serve import CannotStart

from .conftest import WRITE_LOCK, Keys, read_published_keys

OTHER_MASTER_KEY = "A" * 43


async def test_two_first_starts_at_once_make_one_key(spare_database_url: Secret, rival: Rival) -> None:
    """Both found the table empty before either made a key."""
    async with contextlib.AsyncExitStack() as running:
        async with rival.holding(WRITE_LOCK):
            starts = [
                asyncio.create_task(running.enter_async_context(running_core(core_settings(spare_database_url))))
                for _ in range(2)
            ]
            await rival.until_someone_waits(2)
        one, other = await asyncio.gather(*starts)
        keys = await read_published_keys(one)
        assert (list(keys.values()), await read_published_keys(other)) == (["active"], keys)


async def test_a_start_with_keys_makes_no_other(spare_database_url: Secret) -> None:
    seen = []
    for _ in range(2):
        async with running_core(core_settings(spare_database_url)) as api:
            seen.append(await read_published_keys(api))
    assert (seen[0], list(seen[0].values())) == (seen[1], ["active"])


async def test_no_seed_is_stored_in_clear(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    await keys.rotate()
    seeds = [taken for taken in keys.entropy.taken if len(taken) == SEED_BYTES]
    records = await service.list_keys(keys.ctx)
    signers = [SigningKey.from_seed("", seed).public_key for seed in seeds]
    assert {record.public_key for record in records} <= set(signers)
    stored = str(await rival.rows("SELECT signing_keys::text, encode(sealed_seed, 'hex') FROM signing_keys"))
    for seed in seeds:
        assert seed.hex() not in stored
        assert base64.b64encode(seed).decode() not in stored


async def test_a_sealed_seed_opens_in_its_own_row_only(keys: Keys, rival: Rival) -> None:
    """Write access to the table must not make one key sign under another's id."""
    await keys.ensure()
    await keys.stage()
    await rival.run(
        "UPDATE signing_keys SET sealed_seed = (SELECT sealed_seed FROM signing_keys WHERE status = 'next')"
        " WHERE status = 'active'"
    )
    with pytest.raises(SealBroken):
        await keys.ensure()


async def test_under_another_master_key_core_does_not_start(spare_database_url: Secret, keys: Keys) -> None:
    await keys.ensure()
    before = await service.list_keys(keys.ctx)
    with pytest.raises(CannotStart, match=r": sealed under another master key$"):
        async with running_core(core_settings(spare_database_url, master_key=OTHER_MASTER_KEY)):
            pass
    assert await service.list_keys(keys.ctx) == before


async def test_a_retired_key_has_no_secret_half(keys: Keys, rival: Rival) -> None:
    await keys.make_one_of_each()
    rows = await rival.rows("SELECT status FROM signing_keys WHERE sealed_seed IS NULL")
    assert rows == [("retired",)]
