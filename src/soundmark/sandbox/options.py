"""What the sandbox is started with: the address of Core, and the credentials that both sides know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.ids import mint_secret

# The path below which each system answers.
PREFIXES: Final = {"card": "/card", "local": "/local", "accounting": "/accounting", "desk": "/desk"}
# The settings of Core that name the address of a system.
ADDRESSES: Final = {
    "CARD_API_URL": PREFIXES["card"],
    "LOCAL_API_URL": PREFIXES["local"],
    "ACCOUNTING_BASE_URL": PREFIXES["accounting"],
    "SUPPORT_DESK_BASE_URL": PREFIXES["desk"],
}
# The credentials, by the name of Core's setting, and how each begins.
CREDENTIALS: Final = {
    "CARD_SECRET_KEY": "sk_test_",
    "CARD_WEBHOOK_SECRET": "whsec_",
    "LOCAL_PUBLIC_KEY": "",
    "LOCAL_SECRET_KEY": "",
    "ACCOUNTING_API_KEY": "",
    "SUPPORT_API_KEY": "",
    "SUPPORT_WEBHOOK_SECRET": "",
}


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The options of one sandbox.

    `credentials` are by the names of Core's settings. Webhooks go to routes below `core_url`; "" sends none. A webhook
    that is refused is sent again after each of `retry_pauses_s`.
    """

    core_url: str
    credentials: Mapping[str, Secret]
    accounting_entity_id: int = 1
    desk_mailbox_id: int = 1
    retry_pauses_s: tuple[float, ...] = (1, 2, 5, 15, 60)
    # Dolibarr answers a wrong key after a second.
    refusal_pause_s: float = 1

    def secret(self, name: str) -> str:
        """Return the credential `name` as it is sent."""
        return self.credentials[name].reveal()

    def secrets(self, name: str) -> list[str]:
        """Return the credential `name`, or both while it is replaced."""
        return [part.strip() for part in self.secret(name).split(",")]


def choose_credentials(given: Mapping[str, Secret | None], entropy: Entropy) -> dict[str, Secret]:
    """Return every credential: the one that is given, or else a new one."""
    return {name: given.get(name) or Secret(mint_secret(entropy, prefix)) for name, prefix in CREDENTIALS.items()}


def settings_for_core(url: str, options: SandboxOptions) -> dict[str, str]:
    """Return the settings, by name without prefix, with which a Core uses the sandbox at `url`."""
    return {
        **{name: url + prefix for name, prefix in ADDRESSES.items()},
        **{name: secret.reveal() for name, secret in options.credentials.items()},
        **defaults_for_core(entity_id=options.accounting_entity_id, mailbox_id=options.desk_mailbox_id),
    }


def defaults_for_core(*, entity_id: int, mailbox_id: int) -> dict[str, str]:
    """Return the settings, by name without prefix, that Core needs besides addresses and credentials."""
    return {
        "ACCOUNTING_ENTITY_ID": str(entity_id),
        "ACCOUNTING_TVA_RATE": "19",
        "SUPPORT_DESK_MAILBOX_ID": str(mailbox_id),
    }
