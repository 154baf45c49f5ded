"""Ed25519 and the keyring."""

import pytest

from soundmark.kit.crypto.signing import Keyring, PublicKey, SigningKey, verifies

ORDER = 2**252 + 27742317777372353535851937790883648493  # RFC 8032, section 5.1.
PRIME = 2**255 - 19
Y_OF_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
MESSAGE = b"a message"
KEY = SigningKey.from_seed("sig_one", SEED)
SIGNATURE = KEY.sign(MESSAGE)


def test_the_vector_of_the_rfc_holds() -> None:
    """RFC 8032, section 7.1, test 1."""
    assert KEY.public_key.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert KEY.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )


def test_a_signature_verifies() -> None:
    assert verifies(KEY.public_key, MESSAGE, SIGNATURE)


def test_another_message_does_not_verify() -> None:
    assert not verifies(KEY.public_key, MESSAGE + b" ", SIGNATURE)


def test_no_altered_signature_verifies() -> None:
    for position in range(64):
        altered = bytearray(SIGNATURE)
        altered[position] ^= 0x01
        assert not verifies(KEY.public_key, MESSAGE, bytes(altered))


def test_a_signature_of_another_length_does_not_verify(subtests: pytest.Subtests) -> None:
    for size in [0, 1, 63, 65, 128]:
        with subtests.test(size=size):
            assert not verifies(KEY.public_key, MESSAGE, (SIGNATURE * 2)[:size])


def test_bytes_moved_from_the_message_into_the_signature_do_not_verify() -> None:
    assert not verifies(KEY.public_key, MESSAGE[1:], SIGNATURE + MESSAGE[:1])


def test_a_malformed_public_key_verifies_nothing(subtests: pytest.Subtests) -> None:
    """A key of another length must not be read past its end, whatever its origin."""
    for public_key in [b"", KEY.public_key[:31], KEY.public_key + b"\0", bytes(32), b"\xff" * 32]:
        with subtests.test(public_key=public_key):
            assert not verifies(public_key, MESSAGE, SIGNATURE)


def test_a_signature_has_one_spelling() -> None:
    """RFC 8032, section 5.1.7: a scalar beyond the group's order would satisfy the same equation."""
    scalar = int.from_bytes(SIGNATURE[32:], "little") + ORDER
    assert not verifies(KEY.public_key, MESSAGE, SIGNATURE[:32] + scalar.to_bytes(32, "little"))


def test_a_key_of_small_order_verifies_nothing(subtests: pytest.Subtests) -> None:
    """Anybody can write such a signature, which would hold for every message or for one in eight."""
    for y in [0, 1, PRIME - 1, PRIME, PRIME + 1, Y_OF_ORDER_8, PRIME - Y_OF_ORDER_8]:
        for sign in [0, 1]:
            with subtests.test(hex(y), sign=sign):
                point = (y | sign << 255).to_bytes(32, "little")
                for number in range(32):
                    for first in (point, (1).to_bytes(32, "little"), bytes(32)):
                        assert not verifies(point, b"message %d" % number, first + bytes(32))


def test_a_key_pair_does_not_print_its_secret_half() -> None:
    assert repr(KEY) == "SigningKey('sig_one')"
    assert str([KEY]) == "[SigningKey('sig_one')]"


def test_a_keyring_compares_ids_exactly() -> None:
    other = SigningKey.from_seed("sig_two", bytes(32))
    keys = {key.key_id: PublicKey(key.key_id, key.public_key, "active") for key in (KEY, other)}
    keyring = Keyring(keys, KEY)
    assert keyring.verifies("sig_one", MESSAGE, SIGNATURE)
    assert not keyring.verifies("sig_two", MESSAGE, SIGNATURE)
    assert not keyring.verifies("sig_three", MESSAGE, SIGNATURE)


def test_a_keyring_does_not_change() -> None:
    keys = {"sig_one": PublicKey("sig_one", KEY.public_key, "active")}
    keyring = Keyring(keys, KEY)
    keys.clear()
    assert list(keyring.keys) == ["sig_one"]
    with pytest.raises(TypeError):
        keyring.keys["sig_two"] = keyring.keys["sig_one"]  # type: ignore[index]  # what must not work
