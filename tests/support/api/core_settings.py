"""The settings of a Core under test."""

import base64
from typing import Any

from soundmark import settings as declared
from soundmark.kit.crypto.secret import Secret
from support.processes.secret_leaks import remember_secret

BASE_URL = "http://core.test"
OPERATOR_TOKEN = "xop_" + "o" * 43
AUDIO_CREDENTIAL = "audio-credential-of-the-tests"
AUDIENCE_CREDENTIAL = "audience-credential-of-the-tests"
MASTER_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")


def core_settings(database_url: Secret, **changes: Any) -> declared.CoreSettings:
    """Return the settings of a Core under test; `changes` go by field name, with values as in the environment."""
    values: dict[str, Any] = {
        "base_url": BASE_URL,
        "core_database_url": database_url.reveal(),
        "master_key": MASTER_KEY,
        "audio_url": "http://127.0.0.1:9",
        "audio_credential": AUDIO_CREDENTIAL,
        "audience_url": "http://127.0.0.1:9",
        "audience_credential": AUDIENCE_CREDENTIAL,
        "operator_token": OPERATOR_TOKEN,
        "resolve_rate_limit": "1000000",
        "refusal_rate_limit": "1000000",
        "private_timeout_s": "10",
        "webhook_allow_loopback": "true",
        **changes,
    }
    for name in ("master_key", "audio_credential", "audience_credential", "smtp_password"):
        remember_secret(str(values.get(name) or ""))
    environ = {f"SOUNDMARK_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    return declared.read(declared.CoreSettings, environ)


def jobs_settings(database_url: Secret, **changes: str) -> declared.CoreJobsSettings:
    """Return the settings of Core's worker under test; `changes` go by the setting's name without its prefix."""
    given = {
        "CORE_DATABASE_URL": database_url.reveal(),
        "MASTER_KEY": MASTER_KEY,
        "BASE_URL": BASE_URL,
        "AUDIENCE_URL": "http://127.0.0.1:9",
        "AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
        "PRIVATE_TIMEOUT_S": "10",
        "WEBHOOK_ALLOW_LOOPBACK": "true",
        **changes,
    }
    environ = {f"SOUNDMARK_{name}": value for name, value in given.items()}
    return declared.read(declared.CoreJobsSettings, environ)
