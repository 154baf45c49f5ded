"""What a command may reach."""

from dataclasses import dataclass

from soundmark.core.audit_chain import AuditChain
from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.custody import Custody
from soundmark.core.platform_settings import PlatformSettings
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.groups import Groups
from soundmark.kit.jobs import Queue
from soundmark.kit.paging import Cursors
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class Context:
    """What a command may reach: the running process's parts, wired once in `app`."""

    base_url: str
    organizations_per_user: int
    db: Database
    groups: Groups
    clock: Clock
    entropy: Entropy
    custody: Custody
    chain: AuditChain
    platform_settings: PlatformSettings
    cursors: Cursors
    audio: AudioChannel
    audience: AudienceChannel
    sealer: Sealer
    queue: Queue


@dataclass(frozen=True, slots=True)
class WorkContext:
    """What a background job may reach: the parts of a worker, wired once in `worker`."""

    base_url: str
    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    platform_settings: PlatformSettings
    audience: AudienceChannel
