"""Answers that are written to files."""

from pathlib import Path
from typing import Final

import pytest
from soundmark_sdk.client import ServiceUnreachable
from soundmark_sdk.client.saving import open_replacement

from .issuing_service import ORGANIZATION, PROJECT, IssuingService, answer_with, make_client
from .stand_ins import FakeClock, make_response

TENANT: Final = {"organization_id": ORGANIZATION, "project_id": PROJECT}


async def test_every_download_takes_a_path_and_replaces_it_only_by_a_whole_answer(
    issuing: IssuingService, clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "download"
    async with make_client(issuing, clock, **TENANT, attempts_max=1) as client:
        for write in (
            lambda: client.codes.wav("xr_1", path),
            lambda: client.codes.audio_bundle(["xr_1"], str(path)),
            lambda: client.codes.make_offline_pack(path, valid_for_s=300),
            lambda: client.audit_log.download(path),
            lambda: client.audience.download_report("int_1", path),
            lambda: client.audience.download_legacy_report(path),
        ):
            path.write_bytes(b"before")
            issuing.add_faults(answer_with(make_response(200, b"x" * 100_000)[:-50_000]))
            with pytest.raises(ServiceUnreachable):
                await write()
            assert path.read_bytes() == b"before"
            issuing.add_faults(answer_with(make_response(200, b"whole")))
            assert await write() == 5
            assert path.read_bytes() == b"whole"


async def test_a_file_that_cannot_be_written_is_named_as_the_caller_did(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused, open_replacement(tmp_path / "none" / "sound.wav"):
        pass
    assert refused.value.filename == str(tmp_path / "none" / "sound.wav")
