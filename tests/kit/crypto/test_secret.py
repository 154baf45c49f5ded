"""A value that must not be shown."""

import copy
import json
import pickle
import traceback

import pytest

from soundmark.kit.crypto.secret import Secret

TEXT = "hunter-two"


@pytest.fixture
def secret() -> Secret:
    """A secret."""
    return Secret(TEXT)


def test_it_never_prints(secret: Secret) -> None:
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>20}", "%s" % secret, "{}".format(secret)]  # noqa: UP031, UP032 - each way to format
    shown += [repr([secret]), repr({"a": secret}), repr((secret,))]
    assert all(TEXT not in text for text in shown)
    assert repr(secret) == "Secret(***)"


def test_it_is_in_no_traceback(secret: Secret) -> None:
    try:
        raise ValueError(secret)  # noqa: TRY301 - the traceback is what is looked at
    except ValueError as error:
        text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "Secret(***)" in text
    # The fixture's own line contains the constant's name, never its text.
    assert TEXT not in text


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_not_pickled(secret: Secret, protocol: int) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(secret, protocol)


def test_it_is_not_copied(secret: Secret) -> None:
    with pytest.raises(TypeError):
        copy.deepcopy(secret)


def test_it_is_not_json(secret: Secret) -> None:
    with pytest.raises(TypeError):
        json.dumps({"secret": secret})
    assert TEXT not in json.dumps({"secret": secret}, default=str)


def test_it_shows_no_attributes(secret: Secret) -> None:
    with pytest.raises(TypeError):
        vars(secret)


def test_it_is_revealed_on_purpose(secret: Secret) -> None:
    assert secret.reveal() == TEXT


@pytest.mark.parametrize("candidate", ["", "hunter-tw", "hunter-two ", "Hunter-two", "hunter-two\0", "\ud800"])
def test_another_text_is_not_equal(secret: Secret, candidate: str) -> None:
    assert not secret.equals(candidate)


def test_the_same_text_is_equal(secret: Secret) -> None:
    assert secret.equals(TEXT)


def test_text_that_cannot_be_encoded_equals_nothing() -> None:
    """A surrogate is not encoded as a question mark."""
    assert not Secret("what?").equals("what\ud800")
