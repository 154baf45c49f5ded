"""Files that somebody made or altered to harm the verifier: it rejects them, in bounded time and memory."""

import json
import tracemalloc
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import ArchiveFailure, ArchiveRejected

from .archive_verification import MIB, iterate_members, reject, verify
from .archives import make_organization_archive, make_project_archive

# What stands in the place of the first Code, with one failure for all.
HOSTILE: Final = [
    *(b"{", b"[" * 100_000, b'{"a":' * 100_000, b'{"xr_id":1,"xr_id":1}', b'{"xr_id":NaN}', b'{"xr_id":Infinity}'),
    *(b'{"xr_id":9007199254740992}', b'{"xr_id":1e400}', b'{"xr_id":' + b"9" * 10_000 + b"}", b'{"xr_id":"\\ud800"}'),
    *(b'{"xr_id":"\xff"}', b'{"xr_id":"\x00"}', b'{"xr_id":' + b"[" * 65 + b"]" * 65 + b"}"),
    *(b'{"xr_id":"' + b"x" * 2 * MIB + b'"}', b" " * 2 * MIB + b"{}", b'{"xr_id":\n1}', b"", b"{},", b"{}, {}"),
    *(b"{} {}", b"{}]", b"// {}", b"\xef\xbb\xbf{}"),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
def test_a_hostile_record_is_rejected_in_bounded_memory(text: bytes, is_first: bool) -> None:
    archive = make_project_archive()
    record = json.dumps(archive.members["codes"][0 if is_first else 2], ensure_ascii=False).encode()
    hostile = archive.seal(archive.write_members().replace(record, text))
    tracemalloc.start()
    try:
        failure, location = reject(hostile, None)
        assert tracemalloc.get_traced_memory()[1] - len(hostile) < 24 * MIB
    finally:
        tracemalloc.stop()
    assert failure in {"malformed", "wrong_shape"}
    assert location.startswith(("codes[", "api_keys"))


def test_the_text_between_the_records_is_checked_too(subtests: pytest.Subtests) -> None:
    for old, new, failure, location in [
        (b"},\n{", b"}, {", "malformed", "campaigns[1]"),
        (b"},\n{", b"}\n{", "malformed", "campaigns[0]"),
        (b'{"format"', b'{"format" ', None, None),
        (b'{"format"', b'["format"', "malformed", "format"),
        (b'{"format"', b'{7:8,"format"', "malformed", "format"),
        (b'{"format"', b'{"format":7,"format"', "wrong_shape", "format"),
        (b'"exported_at":', b'"exported_at";', "malformed", "exported_at"),
        (b',"verification_keys"', b',"more":1,"verification_keys"', "wrong_shape", "verification_keys"),
        (b',"verification_keys"', b' 1,"verification_keys"', "malformed", "verification_keys"),
        (b',"verification_keys"', b'},"verification_keys"', "malformed", "verification_keys"),
    ]:
        with subtests.test(old=old, new=new, failure=failure, location=location):
            archive = make_project_archive()
            text = archive.seal(archive.write_members().replace(old, new, 1))
            if failure is None:
                assert verify(text).counts["codes"] == 3
            else:
                assert reject(text) == (failure, location)


@pytest.mark.parametrize("pattern", [0x01, 0x80])
def test_every_byte_flipped_once_is_noticed(pattern: int) -> None:
    text = make_organization_archive().write()
    for place in range(len(text)):
        altered = bytearray(text)
        altered[place] ^= pattern
        reject(bytes(altered))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_cut_or_stretched_file_is_rejected(data: st.DataObject) -> None:
    text = make_organization_archive().write()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, len(text)))
    stuffing = data.draw(st.binary(max_size=3))
    altered = text[:start] + stuffing + text[end:]
    if altered not in {text, text.rstrip(b"\n")} and is_in_front_of_the_seal(text, start):
        reject(altered)


def is_in_front_of_the_seal(text: bytes, start: int) -> bool:
    """Return whether a change there is noticed for certain; a space inside the seal, for example, changes nothing."""
    return start <= text.rindex(b',"seal":')


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_the_place_of_a_member_never_breaks_the_verifier(data: st.DataObject) -> None:
    """Nothing but the named failures leaves it, even if the forger holds the key."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
    archive = make_project_archive()
    places = [path for path in iterate_members(archive.members) if path not in {"format", "exported_at"}]
    path, value = data.draw(st.sampled_from(places)), data.draw(values)
    archive.change(path, value)
    text = archive.seal(json_with_anything(archive.members))
    try:
        verify(text)
    except ArchiveRejected as rejected:
        assert rejected.failure in get_args(ArchiveFailure)  # noqa: PT017 - it need not be raised


def json_with_anything(members: dict[str, Any]) -> bytes:
    """Return JSON of one record on a line, which may hold NaN and lone surrogates."""
    lists = (
        f'"{name}":' + ("[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else dump(value))
        for name, value in members.items()
    )
    return ("{" + ",".join(lists)).encode()


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
