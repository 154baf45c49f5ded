"""`/control/local`, `/control/accounting` and `/control/desk`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from markupsafe import escape

from soundmark.sandbox.accounting.api import render_invoice, render_third_party
from soundmark.sandbox.control.act import Act
from soundmark.sandbox.control.fields import ControlRefused, Fields
from soundmark.sandbox.desk.conversations import AGENT, STATUSES, Conversation, render_conversation
from soundmark.sandbox.systems import Systems

_DECIMALS_MAX: Final = 5
_LIFE_S: Final = 24 * 3600
_ATTACHMENT: Final = {
    "id": 1,
    "fileName": "screenshot.png",
    "fileUrl": "https://desk.example/storage/attachment/screenshot.png",
    "mimeType": "image/png",
    "size": 24_000,
}


class OtherControl:
    """The acts on the local provider, the accounting system and the support desk."""

    def __init__(self, systems: Systems) -> None:
        self._local: Final = systems.local
        self._accounting: Final = systems.accounting
        self._desk: Final = systems.desk

    def acts(self) -> list[Act]:
        """Return the acts."""
        return [
            Act("GET", "/local", self._show_local),
            Act("POST", "/local/settings", self._choose_local),
            Act("POST", "/local/payments", self._add_payment),
            Act("POST", "/local/payments/{id}", self._change_payment),
            Act("GET", "/accounting", self._show_accounting),
            Act("POST", "/accounting/settings", self._choose_accounting),
            Act("POST", "/accounting/thirdparties", self._add_third_party),
            Act("POST", "/accounting/invoices/{id}/delete", self._delete_invoice),
            Act("GET", "/desk", self._show_desk),
            Act("POST", "/desk/settings", self._choose_desk),
            Act("POST", "/desk/conversations/{id}/reply", self._reply),
            Act("POST", "/desk/conversations/{id}/note", self._add_note),
            Act("POST", "/desk/conversations/{id}/customer", self._add_customer_message),
            Act("POST", "/desk/conversations/{id}/status", self._set_status),
        ]

    async def _show_local(self, _: Fields, __: Mapping[str, str]) -> Any:
        payments = [asdict(payment) for payment in self._local.newest_first()]
        for payment in payments:
            payment.update({name: payment[name].isoformat() for name in ("created_at", "expires_at")})
        return {"payments": payments}

    async def _choose_local(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"notification_method"})
        method = fields.choice("notification_method", ("GET", "POST"))
        self._local.choices.notification_method = "GET" if method == "GET" else "POST"
        return {}

    async def _add_payment(self, fields: Fields, _: Mapping[str, str]) -> Any:
        """Add a payment that nobody asked for over the API; it has no page and sends no notification."""
        fields.require_known({"id", "amount", "tracking_id", "status", "answer"})
        payment = self._local.add(
            fields.whole("amount", least=1),
            success_link="",
            fail_link="",
            webhook=None,
            tracking_id=fields.text("tracking_id"),
            life_s=_LIFE_S,
            pages_url="",
            payment_id=fields.text("id", ""),
        )
        payment.status, payment.answer = fields.text("status", payment.status), fields.mapping("answer")
        return {"id": payment.id, "status": payment.status}

    async def _change_payment(self, fields: Fields, path: Mapping[str, str]) -> Any:
        """Give a payment a status or another answer, and notify unless `notify` is false."""
        fields.require_known({"status", "answer", "notify"})
        payment = self._local.find(path["id"])
        if payment is None:
            raise ControlRefused("there is no such payment", 404)
        if fields.has("status"):
            payment.status = fields.text("status")
        if fields.has("answer"):
            payment.answer = fields.mapping("answer")
        if fields.flag("notify", default=True):
            self._local.notify(payment)
        return {"id": payment.id, "status": payment.status}

    async def _show_accounting(self, _: Fields, __: Mapping[str, str]) -> Any:
        return {
            "thirdparties": [render_third_party(party) for party in self._accounting.third_parties],
            "invoices": [render_invoice(invoice) for invoice in self._accounting.invoices.newest_first()],
        }

    async def _choose_accounting(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"decimals", "module_on", "restricted_user"})
        choices = self._accounting.choices
        choices.decimals = fields.whole("decimals", choices.decimals, most=_DECIMALS_MAX)
        choices.is_module_on = fields.flag("module_on", default=choices.is_module_on)
        choices.is_user_restricted = fields.flag("restricted_user", default=choices.is_user_restricted)
        return {}

    async def _add_third_party(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"name", "entity"})
        entity = fields.whole("entity", least=1) if fields.has("entity") else None
        return render_third_party(self._accounting.add_third_party(fields.text("name"), entity))

    async def _delete_invoice(self, fields: Fields, path: Mapping[str, str]) -> Any:
        fields.require_known(set())
        if not self._accounting.invoices.remove(path["id"]):
            raise ControlRefused("there is no such invoice", 404)
        return {}

    async def _show_desk(self, _: Fields, __: Mapping[str, str]) -> Any:
        return {"conversations": [render_conversation(each) for each in self._desk.all.newest_first()]}

    async def _choose_desk(self, fields: Fields, _: Mapping[str, str]) -> Any:
        fields.require_known({"signature", "names_external_id", "webhook_url"})
        choices = self._desk.choices
        if fields.has("signature"):
            wanted = fields.choice("signature", ("contract", "native"))
            choices.signature = "native" if wanted == "native" else "contract"
        if fields.has("webhook_url"):
            choices.webhook_url = fields.text("webhook_url")
        choices.names_external_id = fields.flag("names_external_id", default=choices.names_external_id)
        return {}

    async def _reply(self, fields: Fields, path: Mapping[str, str]) -> Any:
        """Answer as the agent, with a status and an attachment if wanted."""
        fields.require_known({"text", "status", "attachment"})
        conversation = self._get(path)
        attachments = (_ATTACHMENT,) if fields.flag("attachment", default=False) else ()
        self._desk.add_thread(conversation, "message", _to_html(fields), AGENT, attachments=attachments)
        self._desk.announce("convo.agent.reply.created", conversation)
        if fields.has("status"):
            self._desk.set_status(conversation, fields.choice("status", STATUSES))
        return render_conversation(conversation)

    async def _add_note(self, fields: Fields, path: Mapping[str, str]) -> Any:
        """Add a note, which the customer never sees."""
        fields.require_known({"text"})
        conversation = self._get(path)
        self._desk.add_thread(conversation, "note", _to_html(fields), AGENT)
        self._desk.announce("convo.note.created", conversation)
        return render_conversation(conversation)

    async def _add_customer_message(self, fields: Fields, path: Mapping[str, str]) -> Any:
        """Write as the customer, as by e-mail."""
        fields.require_known({"text"})
        conversation = self._get(path)
        self._desk.add_thread(conversation, "customer", _to_html(fields), conversation.customer)
        self._desk.announce("convo.customer.reply.created", conversation)
        return render_conversation(conversation)

    async def _set_status(self, fields: Fields, path: Mapping[str, str]) -> Any:
        fields.require_known({"status"})
        conversation = self._get(path)
        self._desk.set_status(conversation, fields.text("status"))
        return render_conversation(conversation)

    def _get(self, path: Mapping[str, str]) -> Conversation:
        conversation = self._desk.all.find(path["id"])
        if conversation is None:
            raise ControlRefused("there is no such conversation", 404)
        return conversation


def _to_html(fields: Fields) -> str:
    return "<div>" + str(escape(fields.text("text"))).replace("\n", "<br>") + "</div>"
