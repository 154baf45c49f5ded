"""What a command may reach."""

from dataclasses import dataclass
from typing import Any

from soundmark.core.audit_chain import AuditChain
from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.custody import Custody
from soundmark.core.domain.scope import Role
from soundmark.core.platform_settings import PlatformSettings
from soundmark.kit.batching import Batcher
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.jobs import Queue
from soundmark.kit.paging import Cursors
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every command may reach, whether a route, a job or the command line calls it. Made by `wiring` alone."""

    base_url: str
    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    platform_settings: PlatformSettings
    audience: AudienceChannel
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext(Context):
    """What only the commands of requests reach: parts that a serving process keeps running.

    `roles` finds the role of a person in an organisation, given as (organisation, subject). `issuances` issues Codes,
    in one queue for each organisation.
    """

    organizations_per_user: int
    roles: Batcher[tuple[str, str], Role | None]
    issuances: Batcher[Any, Any]
    custody: Custody
    chain: AuditChain
    cursors: Cursors
    audio: AudioChannel
