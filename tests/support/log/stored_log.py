"""The log as it is stored, examined by an implementation that shares nothing with ours."""

from dataclasses import dataclass
from typing import Any

from support.database.rival import Rival
from support.log.independent import tlog


@dataclass(frozen=True)
class StoredLog:
    """The rows of the log."""

    rival: Rival
    origin: str
    vkey: str
    first_checkpoint: tuple[Any, ...]

    @classmethod
    async def read(cls, rival: Rival) -> "StoredLog":
        ((origin,),) = await rival.rows("SELECT origin FROM log_state")
        ((public_key,),) = await rival.rows("SELECT public_key FROM log_keys WHERE retired_at IS NULL")
        (checkpoint,) = await rival.rows("SELECT * FROM log_checkpoints")
        vkey = tlog.format_vkey(tlog.vkey_from_ed25519(origin, bytes(public_key)))
        return cls(rival, origin, vkey, checkpoint)

    async def set_back(self) -> None:
        """Do to the log what restoring an older database does: it has its first leaves again, and goes on."""
        size = self.first_checkpoint[0]
        await self.rival.run("DELETE FROM log_leaves WHERE position >= %s", size)
        await self.rival.run("DELETE FROM log_tiles WHERE (level, number) <> (0, 0)")
        await self.rival.run("UPDATE log_tiles SET hashes = substring(hashes FOR 32 * %s)", size)
        await self.rival.run("UPDATE log_state SET size = %s, stopped_reason = NULL", size)
        await self.rival.run("DELETE FROM log_checkpoints")
        await self.rival.run("DELETE FROM log_queue")
        places = ", ".join(["%s"] * len(self.first_checkpoint))
        await self.rival.run(f"INSERT INTO log_checkpoints VALUES ({places})", *self.first_checkpoint)

    async def entries(self) -> list[bytes]:
        """Return the entries in the tree, in its order."""
        return [bytes(entry) for (entry,) in await self.rival.rows("SELECT entry FROM log_leaves ORDER BY position")]

    async def published(self) -> Any:
        """Return the newest published checkpoint, verified."""
        return (await self._checkpoints("WHERE published_at IS NOT NULL"))[-1]

    async def newest(self) -> Any:
        """Return the newest checkpoint, verified."""
        return (await self._checkpoints(""))[-1]

    async def cosigners(self) -> set[str]:
        """Return who cosigned the newest published checkpoint."""
        ((text,),) = await self.rival.rows(
            "SELECT note || cosignatures FROM log_checkpoints WHERE published_at IS NOT NULL ORDER BY size DESC LIMIT 1"
        )
        return {line.name for line in tlog.parse_note(text).signatures} - {self.origin}

    async def state(self) -> str | None:
        """Return why the log is stopped; None if it is not."""
        ((reason,),) = await self.rival.rows("SELECT stopped_reason FROM log_state")
        return None if reason is None else str(reason)

    async def audit(self, *earlier: Any) -> int:
        """Compare every tile and leaf with the newest checkpoint, which extends the earlier ones; return its size."""
        newest = await self.newest()
        positions = await self.rival.rows("SELECT position FROM log_leaves ORDER BY position")
        assert positions == [(position,) for position in range(newest.size)], "without a gap"
        tiles = {
            tlog.tiles.tile_path(level, number, None if len(hashes) == 8192 else len(hashes) // 32): bytes(hashes)
            for level, number, hashes in await self.rival.rows("SELECT level, number, hashes FROM log_tiles")
        }
        entries = await self.entries()
        assert tiles == {
            path: data for path, data in tlog.tiles.materialise_tiles(entries).items() if "/entries/" not in path
        }
        tree = tlog.MerkleTree(entries)
        for checkpoint in (*earlier, newest):
            assert tree.root(checkpoint.size) == checkpoint.root
        assert len(set(entries)) == len(entries), "each is there once"
        return len(entries)

    async def _checkpoints(self, where: str) -> list[Any]:
        rows = await self.rival.rows(f"SELECT note || cosignatures FROM log_checkpoints {where} ORDER BY size")
        found = []
        for (text,) in rows:
            note = tlog.parse_note(text)
            result = tlog.verify_checkpoint(note, tlog.parse_vkey(self.vkey), expected_origin=self.origin)
            assert result.ok, result
            found.append(tlog.parse_checkpoint(note.text))
        return found
