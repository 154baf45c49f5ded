"""All four systems of one sandbox, and what they share."""

from dataclasses import dataclass

import httpx2

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.sandbox.accounting.ledger import Ledger
from soundmark.sandbox.card.api import CardApi
from soundmark.sandbox.card.book import CardBook, CardChoices
from soundmark.sandbox.deliveries import Deliveries
from soundmark.sandbox.desk.conversations import Conversations, DeskChoices
from soundmark.sandbox.local.payments import Payments
from soundmark.sandbox.operation import Shared
from soundmark.sandbox.options import SandboxOptions

# Routes of Core, as its contract has them.
_CARD_WEBHOOK = "/v1/billing/webhooks/card"
_DESK_WEBHOOK = "/v1/support/webhooks/desk"


@dataclass(frozen=True, slots=True)
class Systems:
    """The state of a sandbox; everything is in memory and ends with the process."""

    options: SandboxOptions
    shared: Shared
    deliveries: Deliveries
    card: CardBook
    card_api: CardApi
    local: Payments
    accounting: Ledger
    desk: Conversations

    def clear(self) -> None:
        """Return to the state of the start, with every switch off."""
        self.shared.clear()
        self.deliveries.clear()
        self.card_api.keys.clear()
        for system in (self.card, self.local, self.accounting, self.desk):
            system.clear()


def make_systems(
    options: SandboxOptions, clock: Clock, entropy: Entropy, transport: httpx2.AsyncBaseTransport | None
) -> Systems:
    """Return the systems; `transport` carries webhooks in place of the network."""
    shared = Shared()
    deliveries = Deliveries(shared.switches, clock, entropy, retry_pauses_s=options.retry_pauses_s, transport=transport)
    card_url, desk_url = (
        (options.core_url + path) if options.core_url else "" for path in (_CARD_WEBHOOK, _DESK_WEBHOOK)
    )
    card = CardBook(clock, entropy, deliveries, CardChoices(card_url), options.secrets("CARD_WEBHOOK_SECRET"))
    desk_secret = options.secrets("SUPPORT_WEBHOOK_SECRET")[0]
    return Systems(
        options=options,
        shared=shared,
        deliveries=deliveries,
        card=card,
        card_api=CardApi(card, options.secret("CARD_SECRET_KEY"), shared),
        local=Payments(clock, entropy, deliveries),
        accounting=Ledger(clock, options.accounting_entity_id),
        desk=Conversations(clock, entropy, deliveries, DeskChoices(desk_url), desk_secret),
    )
