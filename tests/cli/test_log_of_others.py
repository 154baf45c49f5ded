"""`soundmark log verify` reads a log that `aics-tlog` wrote, and that a witness of `aics-witness` cosigned."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support.log.independent import witness as aics
from support.log.other_log import OtherLog
from support.log.witnesses import TheirWitness, running_witnesses
from support.processes.running_apps import served_in_thread

from soundmark.core.domain.log.entry import document_entry

from .conftest import Done, run

LOG: Final = OtherLog(document_entry(b"%d" % number) for number in range(700))
FORK: Final = OtherLog([*LOG.entries[:299], *(document_entry(b'"%d"' % number) for number in range(401))])


class Server:
    """Serves what it is told, below the prefix of a log."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.url = ""

    def make_app(self) -> Starlette:
        async def read(request: Request) -> Response:
            found = self.files.get(request.path_params["path"])
            return Response(status_code=404) if found is None else Response(found)

        return Starlette(routes=[Route("/v1/log/{path:path}", read)])

    def serve(self, log: OtherLog, size: int, witness: TheirWitness | None = None) -> None:
        """Serve the first `size` entries of a log, cosigned by the witness."""
        checkpoint = log.checkpoint(size)
        if witness is not None:
            lines = aics.submit_checkpoint(witness.url, checkpoint, log.prove, witness_vkey=str(witness.ours.key))
            checkpoint = aics.merge_cosignatures(checkpoint, lines)
        self.files = {**OtherLog(log.entries[:size]).tiles(), "checkpoint": checkpoint}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server without a log."""
    made = Server()
    with served_in_thread(made.make_app()) as url:
        made.url = url
        yield made


def verify(server: Server, *arguments: str) -> Done:
    return run("log", "verify", "--base-url", server.url, "--vkey", LOG.vkey, *arguments)


def test_their_log_is_verified_as_it_grows(server: Server, tmp_path: Path) -> None:
    state = str(tmp_path / "log.json")
    with running_witnesses(tmp_path, 1) as (witness,):
        witness.know(LOG.origin, LOG.vkey)
        for size in (1, 255, 256, 257, 700):
            server.serve(LOG, size, witness)
            done = verify(server, "--state", state, "--witness", str(witness.ours.key), "--json")
            assert (done.status, done.err) == (0, ""), done
            assert json.loads(done.out)["size"] == size
        server.serve(LOG, 700)
        assert "0 of the given witnesses" in verify(server, "--witness", str(witness.ours.key)).refusal
    server.serve(FORK, 700)
    assert verify(server).status == 0, "whole, and another log with the same key"
    assert verify(server, "--state", state).status == 1
    server.serve(LOG, 700)
    for path in ("tile/0/001", "tile/1/000.p/2", "tile/entries/000", "tile/entries/002.p/188"):
        good = server.files[path]
        server.files[path] = FORK.tiles()[path] if path != "tile/entries/000" else good[:-1] + b"~"
        assert verify(server).status == 1, path
        server.files[path] = good
    assert verify(server, "--state", state).status == 0
