"""How each language writes numbers."""

import pytest

from soundmark.console.language import get_language


@pytest.mark.parametrize(
    ("code", "more", "less"),
    [("en", "+50%", "-1,250%"), ("fr", "+50\N{NO-BREAK SPACE}%", "-1\N{NARROW NO-BREAK SPACE}250\N{NO-BREAK SPACE}%")],
)
def test_a_change_has_its_sign_and_the_per_cent_of_its_language(code: str, more: str, less: str) -> None:
    language = get_language(code)

    assert (language.change(2, 3), language.change(2, -23)) == (more, less)
