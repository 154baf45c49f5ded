"""What a card webhook cannot do without, and nothing else: the signature, one read of the provider, one commit."""

import asyncio
import hashlib
import json
from typing import Any, Final

from soundmark import settings as declared
from soundmark.core.providers.stripe.webhooks import SIGNATURE_HEADER, is_signed
from soundmark.core.store.billing import receipts
from soundmark.core.wiring import make_request_context
from soundmark.kit.crypto.secret import split_secrets
from soundmark.settings.registry import CardSettings

PATH: Final = "/reference/webhook"
_NAME: Final = SIGNATURE_HEADER.lower().encode()


class WebhookReference:
    """An ASGI app for the one path."""

    def __init__(self, settings: declared.CoreSettings) -> None:
        self._ctx: Final = make_request_context(settings)
        self._opening: Final = asyncio.Lock()
        self._is_open = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one event."""
        async with self._opening:
            if not self._is_open:
                await self._ctx.db.open()
                self._is_open = True
        chunks, more = [], True
        while more:
            message = await receive()
            chunks.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(chunks)
        header = next(value for name, value in scope["headers"] if name == _NAME).decode()
        secret = (await self._ctx.platform_settings.read(CardSettings)).card_webhook_secret
        assert secret is not None, "it is configured"
        assert is_signed(body, header, split_secrets(secret), now_s=self._ctx.clock.unix_s()), "it is signed"
        event = json.loads(body)
        await self._ctx.card.read_subscription(event["data"]["object"]["id"])
        async with self._ctx.db.transaction() as tx:
            await receipts.insert_if_new(
                tx,
                provider="card",
                event_id="reference_" + event["id"],
                event_type=event["type"],
                body_digest=hashlib.sha256(body).digest(),
                organization_id=None,
                checkout_id=None,
                reread_at=None,
                now=self._ctx.clock.now(),
            )
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"status":"processed"}'})
