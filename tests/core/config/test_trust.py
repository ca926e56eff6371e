from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from handrail import ConfigError
from handrail.config import trust
from handrail.fs.app_dirs import AppDirs


@pytest.fixture
def places(tmp_path: Path) -> AppDirs:
    return AppDirs.of({"HANDRAIL_HOME": str(tmp_path / "state")})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop" / "inner").mkdir(parents=True)
    return tmp_path / "shop"


def test_nothing_is_trusted_at_first_and_asking_writes_nothing(places, folder, tmp_path):
    assert not trust.is_trusted(folder, places=places)
    assert not (tmp_path / "state").exists()


def test_a_trusted_folder_stays_trusted_until_it_is_taken_back(places, folder):
    assert trust.trust_folder(folder, places=places) == folder
    assert trust.is_trusted(folder, places=places)
    assert trust.untrust_folder(folder, places=places)
    assert not trust.is_trusted(folder, places=places)
    assert not trust.untrust_folder(folder, places=places)


def test_trust_is_for_one_folder_not_for_those_inside(places, folder):
    trust.trust_folder(folder, places=places)
    assert not trust.is_trusted(folder / "inner", places=places)
    assert not trust.is_trusted(folder.parent, places=places)


def test_trust_goes_by_the_real_path(places, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    trust.trust_folder(tmp_path / "link", places=places)
    assert trust.is_trusted(folder, places=places)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(folder / "inner")
    assert not trust.is_trusted(tmp_path / "link", places=places)


def test_the_list_is_readable_by_its_owner_only(places, folder):
    trust.trust_folder(folder, places=places)
    assert stat.S_IMODE(places.trusted_folders.stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_cannot_be_trusted(places, folder):
    with pytest.raises(ConfigError, match="there is no folder"):
        trust.trust_folder(folder / "nowhere", places=places)


@pytest.mark.parametrize("text", ["{", '{"/shop": 1}', "[1]", "\udcff"])
def test_a_broken_list_trusts_nobody_and_is_not_overwritten(places, folder, text):
    places.state.mkdir(parents=True)
    places.trusted_folders.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r"trusted\.json"):
        trust.is_trusted(folder, places=places)
    with pytest.raises(ConfigError, match=r"trusted\.json"):
        trust.trust_folder(folder, places=places)
    assert places.trusted_folders.read_bytes() == text.encode(errors="surrogateescape")


def test_a_list_that_others_can_write_trusts_nobody(places, folder):
    trust.trust_folder(folder, places=places)
    os.chmod(places.trusted_folders, 0o666)
    with pytest.raises(ConfigError, match="other users"):
        trust.is_trusted(folder, places=places)
