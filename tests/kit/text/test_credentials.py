"""A credential is read as people keep it, and everything else is refused without being repeated."""

import pytest

from soundmark.kit.text.credentials import read_credential

KEY = "xak_" + "k" * 42 + "-"


def test_quotes_and_a_name_are_not_part_of_a_credential(subtests: pytest.Subtests) -> None:
    for text in [
        KEY,
        f"  {KEY}\r\n",
        f"\ufeff{KEY}\n",
        f'"{KEY}"\n',
        f"'{KEY}'",
        f"SOUNDMARK_API_KEY={KEY}\n",
        f'SOUNDMARK_API_KEY="{KEY}"\n',
        f"export SOUNDMARK_API_KEY='{KEY}'",
        f"key = {KEY}",
    ]:
        with subtests.test(text=text):
            assert read_credential(text) == KEY


@pytest.mark.parametrize("token", ["eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "b3BhcXVl+/=="])
def test_an_access_token_is_read_as_it_is(token: str) -> None:
    assert read_credential(token) == token
    assert read_credential(f'TOKEN="{token}"') == token


def test_anything_else_is_refused_and_not_repeated(subtests: pytest.Subtests) -> None:
    for text in [
        "",
        '""',
        "NAME=",
        f'"{KEY}',
        f"{KEY}'",
        f"\"{KEY}'",
        f"two {KEY}",
        f"Bearer {KEY}",
        f"A={KEY}\nB={KEY}",
        f'{{"secret": "{KEY}"}}',
        f"A=B={KEY}",
        "ä" * 10,
        "x" * 8193,
    ]:
        with subtests.test(text=text):
            with pytest.raises(ValueError, match=r"^must contain only one API key or access token") as refused:
                read_credential(text)
            assert KEY not in str(refused.value)
