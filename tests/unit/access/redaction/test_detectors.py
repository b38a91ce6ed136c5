"""Detectors: is personal data found, and are other texts left alone?"""

from __future__ import annotations

import signal
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.redaction import KINDS, find_hits
from tests.support.redaction_corpus import Document, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURED = ("cn_id", "phone", "card", "email", "us_ssn", "iban")
CORPUS = documents(300)


def covered(document: Document, kind: str) -> tuple[int, int]:
    """(labels of this kind that are wholly covered, labels of this kind)."""
    hits = find_hits(document.text)
    labels = [label for label in document.labels if label[2] == kind]
    return sum(
        any(hit.kind == kind and hit.start <= start and end <= hit.end for hit in hits) for start, end, _ in labels
    ), len(labels)


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize("kind", MEASURED)
def test_almost_all_of_each_kind_is_found(kind: str) -> None:
    pairs = [covered(document, kind) for document in CORPUS]

    assert sum(total for _, total in pairs) >= 40
    assert sum(found for found, _ in pairs) / sum(total for _, total in pairs) >= 0.97


@pytest.mark.req("TOOLS-25")
def test_what_is_found_is_almost_always_what_it_is_called() -> None:
    right = wrong = 0
    for document in CORPUS:
        for hit in find_hits(document.text, MEASURED):
            labelled = any(
                start < hit.end and hit.start < end and kind == hit.kind for start, end, kind in document.labels
            )
            right, wrong = right + labelled, wrong + (not labelled)

    assert right / (right + wrong) >= 0.95


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("tel:+8613812345678", "phone", "+8613812345678"),
        ("2024-01-15 13812345678", "phone", "13812345678"),
        ("０１０－６５５２９９８８", "phone", "０１０－６５５２９９８８"),
        ("+1 (415) 555-2671 ext. 12", "phone", "+1 (415) 555-2671 ext. 12"),
        ("ring +44 (0)20 7946 0958", "phone", "+44 (0)20 7946 0958"),
        ("Tel. 0664 123456", "phone", "0664 123456"),
        ("NI number AB 12 34 56 C", "national_id", "AB 12 34 56 C"),
        ("Steuer-ID 36 574 261 809", "national_id", "36 574 261 809"),
        ("Hauptstraße 12, 10115 Berlin", "address", "Hauptstraße 12, 10115 Berlin"),
        ("au 12 bis, rue de la Paix, 75002 Paris.", "address", "12 bis, rue de la Paix, 75002 Paris."),
        ("call 4155552671 now", "phone", "4155552671"),
        ("+49 30 901820", "phone", "+49 30 901820"),
        ("john.doe＠example.com", "email", "john.doe＠example.com"),
        ("mailto:JOHN@example.co.uk?subject=x", "email", "JOHN@example.co.uk"),
        ("发到a@example.com谢谢", "email", "a@example.com"),
        ("4111 1111 1111 1111 12", "card", "4111 1111 1111 1111"),
        ("3782 822463 10005", "card", "3782 822463 10005"),
        ("4111.1111.1111.1111", "card", "4111.1111.1111.1111"),
        ("１１０１０５１９４９１２３１００２Ｘ", "cn_id", "１１０１０５１９４９１２３１００２Ｘ"),
        ("身份证号110105 19491231 002x。", "cn_id", "110105 19491231 002x"),
        ("DE89 3704 0044 0532 0130 00 COBADEFF", "iban", "DE89 3704 0044 0532 0130 00"),
        ("SSN 536-22-8726", "us_ssn", "536-22-8726"),
        ("social security 536228726", "us_ssn", "536228726"),
        ("http://[2001:db8::1]:80/", "ip", "2001:db8::1"),
        ("from 10.1.2.3:8080", "ip", "10.1.2.3"),
        ("我住在北京市朝阳区建国路88号2栋3单元501室，谢谢", "address", "北京市朝阳区建国路88号2栋3单元501室"),
        ("地址：杭州市西湖区文三路 478 号", "address", "杭州市西湖区文三路 478 号"),
        ("我家在台北市大安区信义路四段86号，谢谢", "address", "台北市大安区信义路四段86号"),
        ("台北市信義區市府路45號12樓之3。", "address", "台北市信義區市府路45號12樓之3"),
        ("新北市板橋區文化路一段188巷12弄3號5樓", "address", "新北市板橋區文化路一段188巷12弄3號5樓"),
        ("台北市大安區龍門里12鄰和平東路一段5號", "address", "台北市大安區龍門里12鄰和平東路一段5號"),
        ("25979 橫山大安路978號之6", "address", "25979 橫山大安路978號之6"),
        ("台北市 大安區 信義路四段 86 號", "address", "台北市 大安區 信義路四段 86 號"),
        ("桃園市中壢區中央西路二段八十六號七樓", "address", "桃園市中壢區中央西路二段八十六號七樓"),
        ("住在湖南省长沙县平安村3组12号", "address", "湖南省长沙县平安村3组12号"),
        ("重庆市渝中区民权路２８号", "address", "重庆市渝中区民权路２８号"),
        ("北京市东城区东四十条甲22号", "address", "北京市东城区东四十条甲22号"),
        ("成都市武侯区人民南路四段86号附3号", "address", "成都市武侯区人民南路四段86号附3号"),
        ("深圳市南山区科技园南路8号花园小区18幢1-502", "address", "深圳市南山区科技园南路8号花园小区18幢1-502"),
        ("北京市朝阳区望京西园四区410号楼", "address", "北京市朝阳区望京西园四区410号楼"),
        ("住在天通苑北一区12号楼", "address", "天通苑北一区12号楼"),
        ("昌平区龙泽苑东区12号楼3单元501", "address", "昌平区龙泽苑东区12号楼3单元501"),
        ("住在三口村3社12号", "address", "三口村3社12号"),
        ("家住三口村3组", "address", "三口村3组"),
        ("地址：友谊路12–3号", "address", "友谊路12–3号"),
        ("地址：友谊路12—3号", "address", "友谊路12—3号"),
        ("哈尔滨市友谊路49号附1-2，谢谢", "address", "哈尔滨市友谊路49号附1-2"),
        ("海淀区学院路12号院甲3号楼。", "address", "海淀区学院路12号院甲3号楼"),
        ("朝阳区望京园A3栋1204", "address", "朝阳区望京园A3栋1204"),
        ("海淀区学院路12号院3号楼3门501", "address", "海淀区学院路12号院3号楼3门501"),
        ("香港中環德輔道中68號", "address", "香港中環德輔道中68號"),
        ("to 10 Downing Street, London SW1A 2AA.", "address", "10 Downing Street, London SW1A 2AA"),
        ("P.O. Box 1234", "address", "P.O. Box 1234"),
        ("api_key=abc123def456", "secret", "abc123def456"),
        ('{"password": "hunter22"}', "secret", "hunter22"),
        ("密码是Abc12345", "secret", "Abc12345"),
        ("Authorization: Bearer abcdefghijklmnop.qrstuv", "secret", "abcdefghijklmnop.qrstuv"),
        ("postgres://u:p%40ss@db/x", "secret", "u:p%40ss"),
        ("AKIAIOSFODNN7EXAMPLE", "secret", "AKIAIOSFODNN7EXAMPLE"),
        ("x\n-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----", "secret", None),
        ("-----BEGIN PRIVATE KEY-----\nMHc and no end", "secret", None),
    ],
)
def test_a_thing_is_found_where_it_stands(text: str, kind: str, found: str | None) -> None:
    (hit,) = find_hits(text)

    assert hit.kind == kind
    assert text[hit.start : hit.end] == (text[text.index("-----") :] if found is None else found)


@pytest.mark.parametrize(
    "text",
    [
        "Order 1234567890123456, 2024-01-15 2024-01-16, 10:30:00",
        "card 4111 1111 1111 1112",
        "110105194912310021 has another check digit",
        "110105194913310021",
        "DE88370400440532013000",
        "SSN 000-12-3456 and 666-12-3456",
        "v10.0.19045.3693, 1.2.3.4.5, 192.168.1.300",
        "12:34:56:78:9a:bc std::vector a::b",
        "我知道3号开会，这里2号线",
        "列表里5组数据",
        "这个电路2组并联",
        "数据里三组数值",
        "按思路一组一组地做",
        "这个城市里三组数值，本市各村3组数据",
        "I took 5 steps on the Road",
        "password: required field; token: string",
        "550e8400-e29b-41d4-a716-446655440000",
        "@team a@b x@",
        "1,234,567,890 3.14159265358979 9780306406157",
    ],
)
def test_what_only_looks_alike_is_left_alone(text: str) -> None:
    assert find_hits(text) == []


def test_the_name_of_a_property_says_what_its_text_is() -> None:
    assert find_hits("4155552671") == []
    assert [(hit.start, hit.end, hit.kind) for hit in find_hits("4155552671", name="mobile")] == [(0, 10, "phone")]
    assert [hit.kind for hit in find_hits("hunter22", name="password")] == ["secret"]


def test_only_the_kinds_that_were_asked_for_are_looked_for() -> None:
    text = "a@example.com 13812345678"

    assert [hit.kind for hit in find_hits(text, ["phone"])] == ["phone"]
    assert [hit.kind for hit in find_hits(text, [])] == []


@given(st.text(alphabet="0123456789 -.()+@:/aAeE路号区市x省=\n", max_size=200))
def test_hits_lie_in_the_text_and_do_not_overlap(text: str) -> None:
    hits = find_hits(text)

    assert all(0 <= hit.start < hit.end <= len(text) and hit.kind in KINDS for hit in hits)
    assert all(one.end <= other.start for one, other in pairwise(hits))


UNITS = [
    "1",
    "1 ",
    "+1",
    "a@",
    "@a.",
    "f:",
    "eyJaaaaaaaaaa.",
    "路1",
    "村1社",
    "苑北一",
    "路1号甲1门",
    "北京市",
    "12 Aa Bb ",
    "AA00 0000 ",
    "password   ",
    "Abc 1, ",
    "Abc Abc, TX 12345 ",
    "Abc 1, 12345 Abc ",
    "1 rue de Abc ",
    "1 Abc, AB1 2CD ",
    "tel 1",
    "(0",
    "1-",
]


@pytest.fixture
def patience() -> Iterator[None]:
    """A minute of CPU, for what takes less than a second when nothing is tried twice, and hours otherwise."""

    def give_up(*_: object) -> None:
        raise AssertionError("An expression tries the same again and again.")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("unit", [*UNITS, "://" + "a" * 90 + ":", "-----BEGIN PRIVATE KEY-----", "12 Aa St, Bb Cc, "])
def test_no_text_makes_a_detector_try_the_same_again_and_again(unit: str) -> None:
    text = (unit * 200_000)[:200_000]

    assert all(hit.end <= len(text) for hit in find_hits(text))


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("06\u202f12\u202f34\u202f56\u202f78", "phone"),
        ("(415)\u00a0555\u20112671", "phone"),
        ("4111\u00a01111\u00a01111\u00a01111", "card"),
        ("4111\u20131111\u20131111\u20131111", "card"),
        ("DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000", "iban"),
    ],
)
def test_the_spaces_and_hyphens_of_typesetters_hide_nothing(text: str, kind: str) -> None:
    assert [(hit.start, hit.end, hit.kind) for hit in find_hits(text)] == [(0, len(text), kind)]
