"""What a person takes for one name, in any script."""

from __future__ import annotations

import time

import pytest

from handrail.text import fold_text, is_label_match, is_right_to_left


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("FARKLI KAYDET", "Farklı Kaydet", id="turkish-without-a-dot"),
        pytest.param("İPTAL", "iptal", id="turkish-with-a-dot"),
        pytest.param("ΑΡΧΕΊΟ ΩΣ", "Αρχείο ως", id="greek-sigma"),
        pytest.param("ΠΡΟΪΟΝ", "προϊόν", id="greek-accent"),
        pytest.param("STRASSE", "Straße", id="german"),
        pytest.param("ＯＫ", "ok", id="wide"),
        pytest.param("ﾌｧｲﾙ", "ファイル", id="narrow"),
        pytest.param("A\u0308pfel", "äpfel", id="composed"),
        pytest.param("\u200fملف\u200e", "ملف", id="marks-of-direction"),
        pytest.param("استبدِل", "استبدل", id="arabic-points"),
        pytest.param("שָׁלוֹם", "שלום", id="hebrew-points"),
    ],
)
def test_what_is_written_either_way_is_one_text(one: str, other: str) -> None:
    assert fold_text(one) == fold_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("ばつ", "はつ"), ("Ölen", "Olen"), ("किताब", "कताब"), ("\ue001", "\ue002"), ("ά", "έ")],
)
def test_what_is_another_word_stays_another(one: str, other: str) -> None:
    assert fold_text(one) != fold_text(other)


def test_a_text_that_is_all_marks_holds_nobody_up() -> None:
    began = time.process_time()
    fold_text("a" + "\u0301\u0316" * 60_000)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Save As", "Save _As…"),
        ("speichern unter", "Speichern unter\u202f…"),
        ("Street", "Street: *"),
        ("保存", "保存(S)..."),
        ("名前を付けて保存", "名前を付けて保存（_A）…"),
        ("열기", "열기(&O)"),
        ("保存(S)", "保存(S)"),
    ],
)
def test_a_label_is_said_without_its_key_and_dots(name: str, label: str) -> None:
    assert is_label_match(name, label)


@pytest.mark.parametrize(("name", "label"), [("", ""), ("…", ""), ("Option", "Option (A)"), ("保", "保存(S)")])
def test_a_name_says_no_other_label(name: str, label: str) -> None:
    assert not is_label_match(name, label)


def test_the_direction_is_that_of_most_letters() -> None:
    assert is_right_to_left(["ملف", "حرّر", "OK"])
    assert is_right_to_left(["קובץ"])
    assert not is_right_to_left(["File", "Edit", "ملف"])
    assert not is_right_to_left(["ファイル", "12"])
    assert not is_right_to_left([])
