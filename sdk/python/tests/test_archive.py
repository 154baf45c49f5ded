"""Archives are verified without trusting their source: genuine ones state their facts, from any file."""

import hashlib
import io
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import pytest
from soundmark_sdk import ArchiveRejected, read_key_history, verify_archive

from .archive_verification import HISTORY, MIB, make_history, reject, verify
from .archives import (
    ORGANIZATION_ID,
    ORGANIZATION_LISTS,
    PROJECT_ID,
    PROJECT_LISTS,
    make_campaign,
    make_organization_archive,
    make_project_archive,
)
from .issuer import NOW, Issuer, base64url


def test_a_genuine_project_archive_states_its_facts() -> None:
    text = make_project_archive().write()
    verified = verify(text)
    assert (verified.format, verified.subject_id) == ("svc-project-archive-v1", PROJECT_ID)
    assert verified.organization_id == ORGANIZATION_ID
    assert verified.exported_at == NOW + timedelta(hours=1)
    assert verified.counts == {"campaigns": 2, "codes": 3, "api_keys": 2, "audience_integrations": 2}
    assert tuple(verified.counts) == PROJECT_LISTS
    assert (verified.key_id, verified.key_ids) == ("key-2026-11", ("key-2026-05", "key-2026-11"))
    assert verified.digest == base64url(hashlib.sha256(text[: text.rindex(b',"seal":')]).digest())
    assert verified.keys_are_trusted


def test_a_genuine_organisation_archive_states_its_facts() -> None:
    verified = verify(make_organization_archive().write())
    assert (verified.format, verified.subject_id) == ("svc-organization-archive-v1", ORGANIZATION_ID)
    assert tuple(verified.counts) == ORGANIZATION_LISTS
    assert verified.counts["projects"] == verified.counts["codes"] == 2


def test_without_keys_it_is_verified_with_its_own_and_says_so() -> None:
    """Anybody can make such a file, so the result must not look like proof of its origin."""
    forger = Issuer(bytes(31) + b"f", "key-2026-11")
    archive = make_project_archive(codes=0)
    archive.issuer = forger
    archive.change("verification_keys.keys", [forger.jwk()])
    assert not verify(archive.write(), None).keys_are_trusted
    assert reject(archive) == ("signature_invalid", "seal")


@pytest.mark.parametrize("ending", [b"}", b"}\n"])
def test_it_ends_with_at_most_one_newline(ending: bytes, tmp_path: Path) -> None:
    archive = make_project_archive()
    archive.ending = ending
    path = tmp_path / "archive.json"
    path.write_bytes(archive.write())
    assert verify_archive(path, HISTORY) == verify_archive(str(path), HISTORY)
    for longer in (b"\n", b" ", b"\r\n", b"x"):
        assert reject(archive.write().rstrip(b"\n") + b"\n" + longer) == ("seal_missing", "seal")


def test_records_may_lie_on_lines_in_more_than_one_way() -> None:
    """The contract says one record on a line, and not where the brackets and commas are."""
    archive = make_project_archive()
    for old, new in ((b'"codes":[\n', b'"codes":['), (b",\n", b"\n,"), (b"\n]", b"]"), (b'","', b'" ,\t"')):
        text = archive.write_members().replace(old, new)
        assert text != archive.write_members()
        assert verify(archive.seal(text)).counts["codes"] == 3


def test_progress_reaches_the_size_that_the_seal_covers() -> None:
    text = make_project_archive().write()
    progress: list[tuple[int, int]] = []
    verify_archive(io.BytesIO(text), on_progress=lambda *numbers: progress.append(numbers))
    assert [done for done, _ in progress] == sorted({done for done, _ in progress})
    assert {whole for _, whole in progress} == {text.rindex(b',"seal":')}


def test_the_key_of_a_code_must_be_trusted_even_if_the_file_holds_it() -> None:
    assert reject(make_project_archive(), make_history(Issuer())) == ("key_unknown", "codes[0].signed_code")


def test_the_published_keys_are_enough_for_what_they_signed() -> None:
    archive = make_organization_archive()
    assert verify(archive.write(), read_key_history(Issuer().key_set())).keys_are_trusted


def test_a_large_archive_needs_little_memory(tmp_path: Path) -> None:
    """A long list is read record by record."""
    archive = make_project_archive(codes=0)
    campaigns = [make_campaign(number) for number in range(20_000)]
    archive.change("campaigns", campaigns)
    archive.change("counts.campaigns", len(campaigns))
    path = tmp_path / "large.json"
    path.write_bytes(archive.write())
    assert path.stat().st_size > 5 * MIB
    del archive, campaigns
    tracemalloc.start()
    try:
        assert verify_archive(path).counts["campaigns"] == 20_000
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


class ChangingFile(io.BytesIO):
    """A file that somebody changes after its digest was compared."""

    def readline(self, size: int | None = -1, /) -> bytes:
        return super().readline(size).replace(b"Morning", b"Evening")


def test_a_file_that_changes_meanwhile_is_rejected() -> None:
    file: BinaryIO = ChangingFile(make_project_archive().write())
    with pytest.raises(ArchiveRejected) as rejected:
        verify_archive(file, HISTORY)
    assert (rejected.value.failure, rejected.value.location) == ("digest_mismatch", "seal.digest")


def test_a_pipe_is_refused() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(ValueError, match="seek"):
        verify_archive(Pipe())
