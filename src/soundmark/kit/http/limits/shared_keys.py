"""Keys that one process at a time holds, in Redis or Valkey."""

import asyncio
from typing import TYPE_CHECKING, Final

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits.shared_server import ServerAway, SharedServer
from soundmark.kit.tasks import cancel_and_wait

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT_S: Final = 15.0  # How long a key stays taken after its holder died.
_RENEW_EVERY_S: Final = KEPT_S / 3
# Each is one step at the server. The holder's mark is the key's value.
_TAKE: Final = """
    if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1
    """
_RELEASE: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"


class SharedKeys:
    """Keys that one process of all those at the same server holds at a time.

    A holder renews its key until it releases it, so the key of a process that died is free after `KEPT_S`. While that
    server does not answer, every process may hold every key, because an outage must not end the work; a holder claims
    its key as soon as the server is back.
    """

    def __init__(self, url: Secret, *, key_prefix: bytes, clock: Clock, entropy: Entropy) -> None:
        self._key_prefix: Final = key_prefix
        self._mark: Final = entropy.take(16).hex()
        self._server: Final = SharedServer(url, clock, outage="shared_keys_unavailable")
        self._renewals: Final[dict[str, asyncio.Task[None]]] = {}
        self._releases: Final[set[asyncio.Task[None]]] = set()

    async def take(self, key: str) -> bool:
        """Take the key, which this process does not hold; return False if another process holds it."""
        assert key not in self._renewals, "a process takes a key once"
        if not await self._claim(key):
            return False
        self._renewals[key] = asyncio.create_task(self._keep(key), name="shared-key")
        return True

    def release(self, key: str) -> None:
        """Release a key that was taken. The server learns of it in the background."""
        self._renewals.pop(key).cancel()
        task = asyncio.create_task(self._release(key), name="shared-key-release")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def aclose(self) -> None:
        """Stop renewing what is held, finish what is being released, and close the connections."""
        for task in self._renewals.values():
            await cancel_and_wait(task)
        await asyncio.gather(*self._releases)
        await self._server.aclose()

    async def _keep(self, key: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_EVERY_S)
            await self._claim(key)

    async def _claim(self, key: str) -> bool:
        kept_ms = str(round(KEPT_S * 1000))
        try:
            return bool(await self._server.ask(lambda client: self._run(client, _TAKE, key, kept_ms)))
        except ServerAway:
            return True

    async def _release(self, key: str) -> None:
        try:
            await self._server.ask(lambda client: self._run(client, _RELEASE, key))
        except ServerAway:
            return  # The key expires.

    async def _run(self, client: "Redis", script: str, key: str, *arguments: str) -> int:
        done: int = await client.eval(script, 1, self._key_prefix + key.encode().hex().encode(), self._mark, *arguments)  # type: ignore[misc]  # redis types it as for both kinds of clients
        return done
