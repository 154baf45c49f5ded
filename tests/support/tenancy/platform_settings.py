"""The platform settings as platform administrators see and change them."""

from typing import Any

from support.api.core_client import Answer, Api

SETTINGS = "/v1/platform/settings"
PASSWORD = "correct horse battery staple, 42 ü"

# API v1, "Platform settings", and contract, section 7, written down a second time on purpose.
NAMED_SECRETS = {
    *("card_secret_key", "card_webhook_secret", "local_public_key", "local_secret_key", "support_api_key"),
    *("support_webhook_secret", "accounting_api_key", "smtp_username", "smtp_password"),
}
NAMED_CONFIGURATION = {
    *("support_desk_base_url", "support_desk_mailbox_id", "accounting_base_url", "accounting_entity_id"),
    *("accounting_tva_rate", "accounting_enable_invoice_sync", "smtp_host", "smtp_port", "smtp_secure"),
    *("smtp_from_email", "smtp_from_name"),
}
FROM_DEFAULT = {"source": "default", "updated_at": None}
DEFAULTS = {
    **dict.fromkeys(NAMED_CONFIGURATION),
    "accounting_enable_invoice_sync": False,
    "smtp_from_name": "Soundmark",
    "smtp_port": 465,
    "smtp_secure": True,
}


async def put_setting(api: Api, name: str, value: Any) -> Answer:
    kind = "secrets" if name in NAMED_SECRETS else "configuration"
    return await api.call("PUT", f"{SETTINGS}/{kind}/{name}", json={"value": value})


async def read_settings(api: Api) -> dict[str, Any]:
    answer = await api.get(SETTINGS)
    assert answer.status == 200, answer.body
    return dict(answer.json)
