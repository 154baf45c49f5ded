"""The TLS context that the clients of a process share."""

from pathlib import Path

from support.outside.private_authority import make_authority

from soundmark.kit.http.outbound.tls import share_tls_context


def test_authorities_are_read_once_for_each_file(tmp_path: Path) -> None:
    ca_file = make_authority(tmp_path, "127.0.0.1").ca_file
    assert share_tls_context(None) is share_tls_context(None)
    assert share_tls_context(ca_file) is share_tls_context(ca_file)
    assert share_tls_context(ca_file) is not share_tls_context(None)
    assert len(share_tls_context(ca_file).get_ca_certs()) == len(share_tls_context(None).get_ca_certs()) + 1
