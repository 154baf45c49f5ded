"""The state of the local provider: payments, and the notifications about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.sandbox.deliveries import Deliveries, Delivery, Notice
from soundmark.sandbox.minting import mint_id
from soundmark.sandbox.shelf import Shelf


@dataclass(slots=True)
class Payment:
    """A payment page; `amount` is in millimes. `answer` takes the place of members when the payment is verified."""

    id: str
    amount: int
    success_link: str
    fail_link: str
    webhook: str | None
    tracking_id: str | None
    link: str
    created_at: datetime
    expires_at: datetime
    status: str = "PENDING"
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class LocalChoices:
    """What a person or a test may choose: how notifications are sent. The real ones are `GET`."""

    notification_method: Literal["GET", "POST"] = "GET"


class Payments:
    """Everything that the local provider remembers."""

    def __init__(self, clock: Clock, entropy: Entropy, deliveries: Deliveries) -> None:
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._deliveries: Final = deliveries
        self.choices = LocalChoices()
        self._payments: Final[Shelf[Payment]] = Shelf()

    def add(
        self,
        amount: int,
        *,
        success_link: str,
        fail_link: str,
        webhook: str | None,
        tracking_id: str | None,
        life_s: int,
        pages_url: str,
        payment_id: str = "",
    ) -> Payment:
        """Add a pending payment, whose page is below `pages_url`. The tracking id may be that of another payment."""
        payment_id = payment_id or mint_id(self._entropy, "", 22)
        now = self._clock.now()
        payment = Payment(
            payment_id,
            amount,
            success_link,
            fail_link,
            webhook,
            tracking_id,
            f"{pages_url}/pay/{payment_id}",
            now,
            now + timedelta(seconds=life_s),
        )
        return self._payments.add(payment_id, payment)

    def find(self, payment_id: str) -> Payment | None:
        """Return a payment; one whose time is over expires."""
        payment = self._payments.find(payment_id)
        if payment is not None and payment.status == "PENDING" and self._clock.now() >= payment.expires_at:
            payment.status = "EXPIRED"
        return payment

    def newest_first(self) -> list[Payment]:
        """Return all payments, the newest first."""
        return self._payments.newest_first()

    def notify(self, payment: Payment) -> Delivery | None:
        """Send a notification, which is not signed, if the payment has an address for it."""
        if payment.webhook is None:
            return None
        fields = {"payment_id": payment.id, "success": str(payment.status == "SUCCESS")}
        if self.choices.notification_method == "GET":
            notice = Notice("local", payment.status, "GET", add_query(payment.webhook, fields), b"", dict)
        else:
            headers = {"content-type": "application/x-www-form-urlencoded"}
            body = urlencode(fields).encode()
            notice = Notice("local", payment.status, "POST", payment.webhook, body, lambda: headers)
        return self._deliveries.send(notice)

    def clear(self) -> None:
        """Forget every payment."""
        self._payments.clear()
        self.choices = LocalChoices()


def add_query(url: str, fields: dict[str, str]) -> str:
    """Return `url` with `fields` appended to its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode([*parse_qsl(parts.query), *fields.items()])))
