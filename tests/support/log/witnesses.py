"""Witnesses of others on a real socket, over which a test has power."""

import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from soundmark.core.domain.log.state import Witness
from soundmark.kit.crypto.signed_notes import COSIGNATURE, parse_verifier_key
from support.log.independent import witness as aics


class TheirWitness:
    """A witness of `aics-witness`. What it has seen outlives `stop`."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder: Final = folder
        key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        self.store: Final = aics.WitnessStore(folder / f"witness-{number}.db", create=True)
        self._witness: Final = aics.Witness(f"witness-{number}.example", key, self.store)
        self._add: Final = self._witness.add_checkpoint
        self._witness.add_checkpoint = self._add_as_told
        self._server: Any = None
        self.url = ""
        self.goes_on: Final = threading.Event()  # It answers nothing until this is set.
        self.goes_on.set()
        self.answer: tuple[int, bytes] | None = None  # In place of its own.

    def _add_as_told(self, body: bytes) -> bytes:
        self.goes_on.wait()
        if self.answer is None:
            added: bytes = self._add(body)
            return added
        status, answer = self.answer
        if status == HTTPStatus.OK:
            return answer
        raise aics.WitnessError(status, "as told", body=answer)

    def know(self, origin: str, *vkeys: str) -> None:
        """Make the witness know a log."""
        self._witness.set_logs([aics.LogConfig.from_strings(origin, vkeys)])

    @property
    def ours(self) -> Witness:
        """The witness as a deployment configures it."""
        return Witness(parse_verifier_key(self._witness.vkey_text, types=(COSIGNATURE,)), self.url)

    def start(self, port: int = 0) -> None:
        self._server = aics.make_server(self._witness, port=port)
        self.url = self._server.url.rstrip("/")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.goes_on.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def size(self, origin: str) -> int:
        """Return what it has cosigned."""
        state = self.store.get(origin)
        return 0 if state is None else int(state.size)


@contextlib.contextmanager
def running_witnesses(folder: Path, count: int) -> Iterator[list[TheirWitness]]:
    """Run witnesses that know no log yet."""
    witnesses = [TheirWitness(folder, number) for number in range(1, count + 1)]
    try:
        for witness in witnesses:
            witness.start()
        yield witnesses
    finally:
        for witness in witnesses:
            witness.stop()
            witness.store.close()
