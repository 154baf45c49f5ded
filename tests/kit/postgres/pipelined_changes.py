"""Short transactions through libpq's pipeline, which tests run and break."""

import contextlib
from collections.abc import AsyncIterator

from support.database.cutting_proxy import CuttingProxy
from support.database.notes_table import write_note

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.pipelined_tx import PipelinedTx


async def backend_of(tx: PipelinedTx) -> int:
    pid: int = await tx.value("SELECT pg_backend_pid()")
    return pid


async def backend(transactions: PipelinedTransactions) -> int:
    async with transactions.transaction(tenant="one") as tx:
        return await backend_of(tx)


async def echo(tx: PipelinedTx, text: str) -> str:
    answer: str = await tx.value("SELECT %(text)s::text", {"text": text})
    return answer


async def change(transactions: PipelinedTransactions, *texts: str) -> list[str]:
    """Read in one round trip, and write and commit in the second; return what was read."""
    async with transactions.transaction(tenant="one") as tx:
        async with tx.pipeline() as send:
            read = [send(echo(tx, text)) for text in texts]
        async with tx.ending():
            for text in texts:
                await write_note(tx, text)
    return [one.result() for one in read]


@contextlib.asynccontextmanager
async def cut(kit_url: Secret) -> AsyncIterator[tuple[PipelinedTransactions, CuttingProxy]]:
    """Yield transactions through a proxy, on one connection that is open and has prepared what `change` sends."""
    proxy = CuttingProxy(kit_url)
    async with proxy.serving() as db:
        transactions = PipelinedTransactions(db, size=1)
        await change(transactions, "first")
        yield transactions, proxy
        await transactions.aclose()
