"""Keyset pages and their cursors."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.kit.text import base64url
from soundmark.kit.text.paging import Cursors, InvalidCursor, Page, Position, cut_page

CODEC = Cursors(bytes(range(32)))
POSITION = Position(datetime(2026, 11, 20, 12, 0, tzinfo=UTC), "xr_" + "a" * 22)
BOUND_TO = {"organization_id": "org_1", "project_id": None}
CURSORS = CODEC.bind("codes", **BOUND_TO)


def written(position: Position = POSITION) -> str:
    text = CURSORS.write(position)
    assert text is not None
    return text


positions = st.builds(
    Position,
    st.datetimes(
        min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
        timezones=st.just(UTC),
    ).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    st.text("abcXYZ019_-", min_size=1, max_size=40),
)


@given(positions)
def test_a_position_is_read_back(position: Position) -> None:
    assert CURSORS.read(written(position)) == position


def test_a_cursor_of_an_earlier_release_is_read() -> None:
    """Both run side by side during an upgrade, and a client keeps a cursor for as long as it likes."""
    earlier = "qyXwwIRSUJsVaJtRRt7PulsiMjAyNi0xMS0yMFQxMjowMDowMC4wMDBaIiwieHJfYWFhYWFhYWFhYWFhYWFhYWFhYWFhYSJd"
    assert written() == earlier
    assert CURSORS.read(earlier) == POSITION


def test_without_a_position_there_is_no_cursor() -> None:
    assert CURSORS.write(None) is None
    assert CURSORS.read(None) is None


def test_the_order_of_filters_does_not_matter() -> None:
    assert CODEC.bind("codes", **dict(reversed(BOUND_TO.items()))).read(written()) == POSITION


def test_a_cursor_of_another_list_is_refused(subtests: pytest.Subtests) -> None:
    for name, (route, bound_to) in {
        "route": ("projects", BOUND_TO),
        "tenant": ("codes", {**BOUND_TO, "organization_id": "org_2"}),
        "filter set": ("codes", {**BOUND_TO, "project_id": "prj_1"}),
        "filter gone": ("codes", {"organization_id": "org_1"}),
        "filter added": ("codes", {**BOUND_TO, "status": None}),
        "nothing": ("codes", {}),
    }.items():
        with subtests.test(name), pytest.raises(InvalidCursor):
            CODEC.bind(route, **bound_to).read(written())


def test_a_cursor_under_another_key_is_refused() -> None:
    with pytest.raises(InvalidCursor):
        Cursors(bytes(32)).bind("codes", **BOUND_TO).read(written())


def test_an_edited_cursor_is_refused() -> None:
    data = base64url.decode(written())
    for position in range(len(data)):
        altered = bytearray(data)
        altered[position] ^= 1
        with pytest.raises(InvalidCursor):
            CURSORS.read(base64url.encode(bytes(altered)))


@given(st.text(max_size=60))
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.read(text)


def test_an_almost_valid_cursor_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "A", "=", "A" * 1_000_000, "null", '["2026-11-20T12:00:00.000Z","xr_1"]']:
        with subtests.test(text=text), pytest.raises(InvalidCursor):
            CURSORS.read(text)


def test_a_cursor_without_its_seal_is_refused() -> None:
    content = json.dumps(["2026-11-20T12:00:00.000Z", "xr_1"]).encode()
    for seal in (b"", bytes(16)):
        with pytest.raises(InvalidCursor):
            CURSORS.read(base64url.encode(seal + content))


@given(st.lists(st.integers(), max_size=12, unique=True), st.integers(1, 10))
def test_pages_hold_every_entry_once_in_order(entries: list[int], limit: int) -> None:
    seen: list[int] = []
    start = 0
    while True:
        page: Page[int] = cut_page(
            entries[start : start + limit + 1], limit, lambda entry: Position(POSITION.created_at, str(entry))
        )
        seen += page.entries
        if page.next_position is None:
            break
        assert len(page.entries) == limit
        start = entries.index(int(page.next_position.id)) + 1
    assert seen == entries
