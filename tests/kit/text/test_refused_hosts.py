"""Hosts that no setting may lead to, in every spelling that a client would connect to."""

from ipaddress import ip_address

import pytest

from soundmark.kit.text.refused_hosts import is_refused_address, is_refused_host


def test_link_local_addresses_and_metadata_servers_are_refused(subtests: pytest.Subtests) -> None:
    for host in [
        *("169.254.169.254", "169.254.0.1", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE"),
        *("0251.0376.0251.0376", "169.254.43518", "169.16689662", "::ffff:169.254.169.254", "::169.254.169.254"),
        *("::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1"),
        *("2001:0:a9fe:a9fe::", "2001:db8::5efe:169.254.169.254", "fe80::1", "febf::1", "fe80::1%eth0"),
        *("fd00:ec2::254", "FD00:0EC2:0:0::254", "100.100.100.200", "metadata.google.internal"),
        *("Metadata.Google.Internal.", "metadata"),
    ]:
        with subtests.test(host=host):
            assert is_refused_host(host)


def test_loopback_private_and_public_hosts_are_not(subtests: pytest.Subtests) -> None:
    for host in [
        *("127.0.0.1", "localhost", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "fd12:3456::1", "0.0.0.0"),  # noqa: S104 - compared
        *("100.100.100.201", "169.253.255.255", "2130706433", "64:ff9b::a00:1", "fec0::1", "2001:db8::1"),
        *("desk.example.org", "metadata.example.org", "169.254.169.254.example", "1.2.3.4.5", "ä", ""),
    ]:
        with subtests.test(host=host):
            assert not is_refused_host(host)


@pytest.mark.parametrize(("address", "is_refused"), [("169.254.1.1", True), ("fe80::1%lo", True), ("10.0.0.1", False)])
def test_the_address_of_a_connection_is_judged_as_well(address: str, *, is_refused: bool) -> None:
    assert is_refused_address(ip_address(address)) is is_refused
