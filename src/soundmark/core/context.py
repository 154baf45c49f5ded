"""What a command may reach."""

from dataclasses import dataclass

from soundmark.core.channel.audio import AudioChannel
from soundmark.core.configuration import Configuration
from soundmark.core.custody import Custody
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.paging import Cursors
from soundmark.kit.postgres import Database


@dataclass(frozen=True, slots=True)
class Context:
    """The running process's parts, wired once in `app`."""

    base_url: str
    db: Database
    clock: Clock
    entropy: Entropy
    custody: Custody
    configuration: Configuration
    cursors: Cursors
    audio: AudioChannel
