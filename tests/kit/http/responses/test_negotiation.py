"""Which media type an Accept header prefers."""

import pytest

from soundmark.kit.http.responses.negotiation import choose_media_type

OFFERED = ("application/json", "application/x-ndjson", "text/csv")

LIKED: list[tuple[list[str], str | None]] = [
    ([], "application/json"),
    ([""], "application/json"),
    (["*/*"], "application/json"),
    (["text/csv"], "text/csv"),
    (["Text/CSV;header=present"], "text/csv"),
    (["text/csv", "application/json"], "application/json"),
    (["text/csv,application/json;q=0.9"], "text/csv"),
    (["application/*;q=0.2, text/*;q=0.3"], "text/csv"),
    # The more specific range decides, wherever it stands and whatever its weight.
    (["*/*, application/json;q=0"], "application/x-ndjson"),
    (["application/json;q=0.1, */*;q=0.5"], "application/x-ndjson"),
    (["text/csv;q=0.001"], "text/csv"),
    (["text/csv;q=0"], None),
    (["text/csv;q=0.000"], None),
    (["*/*;q=0"], None),
    (["image/png"], None),
    (["csv"], None),
    (["*/csv"], None),
    (["text/csv extra"], None),
    ([","], None),
    ([", text/csv ,"], "text/csv"),
]


def test_the_preferred_type_is_chosen(subtests: pytest.Subtests) -> None:
    for accept, liked in LIKED:
        with subtests.test(accept=accept, liked=liked):
            assert choose_media_type(accept, OFFERED) == liked


def test_what_follows_the_first_64_media_ranges_is_ignored() -> None:
    assert choose_media_type(["a/b, " * 63 + "text/csv"], OFFERED) == "text/csv"
    assert choose_media_type(["a/b, " * 64 + "text/csv"], OFFERED) is None
    assert choose_media_type([*["a/b"] * 64, "text/csv"], OFFERED) is None


def test_a_long_header_is_read_in_time() -> None:
    """The pattern must not backtrack over the same text again and again."""
    assert choose_media_type(["text/csv;" + ";a=b" * 5000 + "\n"], OFFERED) in {None, "text/csv"}
    assert choose_media_type(["a" * 60_000], OFFERED) is None
