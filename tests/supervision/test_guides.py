"""README.md and the guides, followed by one reader: each block runs as printed, in the order of README.

They run one after another on one `up`, in one checkout, so no page may need what another one took.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from PIL import Image
from support.processes.guide_blocks import ROOT, Reader, read_page
from support.processes.secret_leaks import remember_secret
from support.processes.up_process import Up

from soundmark.kit.http.server.sockets import shared_socket

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
# Those of which a reader runs every block. The others show commands for a deployment or a site of one's own.
RUN: Final = ("receiving", "mastering", "issuing", "venue", "measuring", "leaving", "selling", "webhooks")
# These change the machine, or were done before.
NOT_RUN: Final = ("make up\n", "pip install ", "systemctl ")

# A test machine has no microphone: a fake PortAudio package plays the demo's sound.
SOUNDDEVICE: Final = '''
import numpy as np
import soundfile


class PortAudioError(Exception):
    """The name that the SDK looks for."""


def query_devices(device, kind):
    return {"default_samplerate": 48_000.0}


class InputStream:
    def __init__(self, *, samplerate, device, channels, dtype):
        self.sound, _ = soundfile.read(".soundmark/demo.wav", dtype=dtype)

    def start(self):
        pass

    def close(self):
        pass

    def read(self, count):
        block, self.sound = self.sound[:count], self.sound[count:]
        return np.pad(block, (0, count - len(block)))[:, np.newaxis], False
'''


@pytest.fixture(scope="module")
def reader(with_sandbox: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader in a checkout where `make up` is running; what the pages start in the background ends with it."""
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / ".soundmark").symlink_to(with_sandbox.data_dir)
    (checkout / "sounddevice.py").write_text(SOUNDDEVICE)
    with shared_socket("127.0.0.1", 0) as backend, shared_socket("127.0.0.1", 0) as consumer:
        ports = {"8090": str(backend.getsockname()[1]), "9292": str(consumer.getsockname()[1])}
    # Nobody listens on them any more, and they are not reassigned so soon.
    reader = Reader(checkout, with_sandbox.where["base_url"], ports)
    try:
        yield reader
    finally:
        reader.close()


def test_the_commands_of_readme_run(reader: Reader) -> None:
    blocks = [block for language, block, _ in read_page("README.md")[1] if language == "sh"]
    assert len(blocks) == README.count("```sh") == 2
    for block in blocks:
        assert "https://example.org/tonight" in reader.run("sh", block)


def test_these_are_the_guides_in_the_order_of_readme() -> None:
    named = re.findall(r"^- \[.*?\]\(docs/guides/(\w+)\.md\)", README, re.MULTILINE)
    assert [name for name in named if name in RUN] == list(RUN)


@pytest.mark.parametrize("name", RUN)
def test_a_guide_prints_the_output_on_the_page_after_the_ones_before_it(reader: Reader, name: str) -> None:
    page, blocks = read_page(f"docs/guides/{name}.md")
    assert len(blocks) == page.count("```python") + page.count("```sh")
    for language, block, printed in blocks:
        if not any(word in block for word in NOT_RUN):
            reader.follow(language, block, printed)


def test_the_guide_on_measuring_leaves_a_picture_and_its_secrets_to_the_reader_alone(reader: Reader) -> None:
    folder = reader.checkout / ".soundmark" / "measuring"
    with Image.open(folder / "report.png") as picture:
        picture.load()
        assert picture.format == "PNG"
    for name in ("publisher.env", "publisher.secret", "radio.key", "reporting-token", "device-secret"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    recorded = reader.background.read_text()
    settings = reader.settings()
    for secret in (settings["PUBLISHER_HMAC_SECRET"], settings["PUBLISHER_REPORTING_KEY"]):
        remember_secret(secret)
        assert secret not in recorded
    assert "evt_" not in recorded


def test_the_consumer_of_the_guide_on_webhooks_got_no_malformed_message(reader: Reader) -> None:
    assert "malformed" not in (reader.checkout / ".soundmark" / "webhooks" / "consumer.log").read_text()
