"""Answers to a resolution with any intent, signed with the key of the published vectors."""

import copy
import json
from pathlib import Path
from typing import Any, Final

from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url

VECTORS: Final = json.loads(
    (Path(__file__).parents[3] / "docs" / "vectors" / "resolution-proof-v1.json").read_text(encoding="utf-8")
)
GENUINE: Final[dict[str, Any]] = VECTORS["cases"][0]
MEASURED: Final[dict[str, Any]] = next(each for each in VECTORS["cases"] if "measurement_proof" in each["answer"])


def sign_answer(intent: dict[str, Any]) -> dict[str, Any]:
    """Return the genuine answer with another intent, which Core would have signed."""
    answer: dict[str, Any] = copy.deepcopy(GENUINE["answer"])
    payload = {**json.loads(GENUINE["canonical"]), "intent": intent}
    signed = canonicalize(payload)
    key_id = payload["key_id"]
    key = SigningKey.from_seed(key_id, base64url.decode(VECTORS["seeds"][key_id]))
    answer["intent"] = intent
    answer["resolution_proof"]["payload"] = base64url.encode(signed)
    answer["resolution_proof"]["signature"] = base64url.encode(key.sign(signed))
    return answer
