"""The certificates of the person that a command with hosts can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail_cli.tools.network_setup import has_only_certificates

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


def test_certificates_are_shown_as_a_file_and_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "0a1b2c3d.0").symlink_to("ca.pem")
    assert has_only_certificates(tmp_path / "ca.pem")
    assert has_only_certificates(tmp_path)


@pytest.mark.parametrize("text", ["notes\n", KEY, CERTIFICATE + KEY, ""])
def test_nothing_else_is_shown_whatever_file_of_a_project_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "other").write_text(text)
    assert not has_only_certificates(tmp_path / "other")
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    assert not has_only_certificates(tmp_path), "a home directory holds other files, too"
    assert not has_only_certificates(tmp_path / "missing")
