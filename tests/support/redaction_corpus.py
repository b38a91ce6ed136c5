"""Redaction corpus: which texts, in English and in Chinese, hold personal data at which places?

Made up from a seed: letters, orders, logs and chats with the numbers that they hold, and with as many that only look alike
(order numbers, times, versions, digests, prices). The numbers are made here, with check digits computed here, so that a detector
is not measured by itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Label = tuple[int, int, str]


@dataclass(slots=True)
class Document:
    text: str = ""
    labels: list[Label] = field(default_factory=list)

    def add(self, text: str, kind: str = "") -> Document:
        if kind:
            self.labels.append((len(self.text), len(self.text) + len(text), kind))
        self.text += text
        return self


class Maker:
    """Numbers and names that could be real."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def digits(self, count: int) -> str:
        return "".join(self.random.choice("0123456789") for _ in range(count))

    def email(self) -> str:
        name = self.pick("wei.zhang", "john", "li_na88", "m.o'brien", "sales+eu", "x", "anna-maria.k")
        return (
            f"{name}@{self.pick('example.com', 'mail.example.org', 'firma.example.de', 'qq.com', 'a-b.example.co.uk')}"
        )

    def cn_id(self) -> str:
        year, month, day = self.random.randint(1940, 2012), self.random.randint(1, 12), self.random.randint(1, 28)
        body = f"{self.pick('110105', '310115', '440305', '510107', '330106')}{year}{month:02}{day:02}{self.digits(3)}"
        weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]
        check = "10X98765432"[sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True)) % 11]
        return body + self.random.choice([check, check.lower()])

    def card(self) -> str:
        prefix, length = self.random.choice(
            [("4", 16), ("51", 16), ("2221", 16), ("37", 15), ("622202", 19), ("6011", 16)]
        )
        body = prefix + self.digits(length - 1 - len(prefix))
        total = 0
        for place, digit in enumerate(reversed(body)):
            double = int(digit) * (2 if place % 2 == 0 else 1)
            total += double - 9 if double > 9 else double
        number = body + str(-total % 10)
        sign = self.pick("", " ", "-")
        return sign.join(number[place : place + 4] for place in range(0, len(number), 4))

    def iban(self) -> str:
        country, length = self.random.choice([("DE", 18), ("GB", 18), ("FR", 23), ("NL", 14), ("ES", 20)])
        bank = "WEST" if country == "GB" else "ABNA" if country == "NL" else ""
        body = bank + self.digits(length - len(bank))
        number = int("".join(str(int(char, 36)) for char in body + country + "00"))
        text = f"{country}{98 - number % 97:02}{body}"
        return text if self.random.random() < 0.5 else " ".join(text[at : at + 4] for at in range(0, len(text), 4))

    def ssn(self) -> str:
        return f"{self.random.randint(100, 665)}-{self.random.randint(10, 99)}-{self.random.randint(1000, 9999)}"

    def phone_cn(self) -> str:
        number = self.pick("138", "139", "158", "186", "177", "199") + self.digits(8)
        return self.pick(
            number,
            f"{number[:3]} {number[3:7]} {number[7:]}",
            f"{number[:3]}-{number[3:7]}-{number[7:]}",
            f"+86 {number}",
            f"+86-{number}",
            f"010-{self.random.randint(6000, 8999)}{self.digits(4)}",
            f"(021) {self.random.randint(5000, 6999)}{self.digits(4)}",
        )

    def phone_en(self) -> str:
        area = self.pick("212", "415", "312", "206", "617")
        exchange = f"{self.random.randint(2, 9)}{self.random.randint(2, 9)}{self.random.randint(0, 9)}"
        line = self.digits(4)
        return self.pick(
            f"({area}) {exchange}-{line}",
            f"{area}-{exchange}-{line}",
            f"+1 {area} {exchange} {line}",
            f"+1{area}{exchange}{line}",
            f"1-{area}-{exchange}-{line}",
            f"020 7946 0{self.digits(3)}",
            f"+44 7400 {self.digits(6)}",
            f"07400 {self.digits(6)}",
        )

    def noise(self) -> str:
        """Numbers and names that are nobody's."""
        return self.pick(
            f"order 20{self.digits(2)}-{self.digits(7)}",
            f"2024-0{self.random.randint(1, 9)}-1{self.random.randint(0, 9)} 10:{self.random.randint(10, 59)}:00",
            f"17{self.digits(8)}",
            f"17{self.digits(11)}",
            f"v{self.random.randint(1, 9)}.{self.random.randint(0, 20)}.{self.random.randint(0, 99)}",
            f"{self.random.randint(1, 999)},{self.digits(3)}.{self.digits(2)} USD",
            f"¥{self.random.randint(100, 99999)}.00",
            f"sha256:{self.random.getrandbits(256):064x}",
            f"SKU-{self.digits(6)}-{self.pick('A', 'B')}",
            f"{self.random.getrandbits(32):08x}-{self.random.getrandbits(16):04x}-4{self.random.getrandbits(12):03x}",
            f"@{self.pick('team', 'ops', 'here')}",
            f"ISBN 978-7-{self.digits(3)}-{self.digits(5)}-{self.random.randint(0, 9)}",
            f"{self.random.randint(2, 30)} x {self.random.randint(100, 999)} g",
            f"第{self.random.randint(1, 99)}号文件，共{self.random.randint(10, 99)}页",
        )


def _english(maker: Maker) -> Document:
    document = Document()
    document.add(maker.pick("Dear Ms Li, ", "Ticket note: ", "INFO ", "")).add(f"ref {maker.noise()}. ")
    document.add(maker.pick("Write to ", "Contact: ", "from=<")).add(maker.email(), "email").add(
        maker.pick("; ", ", ", "> ")
    )
    document.add(maker.pick("call ", "phone ", "Tel: ", "reach me on ")).add(maker.phone_en(), "phone")
    document.add(maker.pick(". ", ", ", "\n")).add(f"Paid {maker.noise()} with ").add(maker.card(), "card").add(". ")
    if maker.random.random() < 0.5:
        document.add("SSN ").add(maker.ssn(), "us_ssn").add("; ")
    if maker.random.random() < 0.5:
        document.add("IBAN ").add(maker.iban(), "iban").add("\n")
    return document.add(f"See {maker.noise()} and {maker.noise()}.")


def _chinese(maker: Maker) -> Document:
    document = Document()
    document.add(maker.pick("您好，", "工单备注：", "客户说：", "")).add(f"编号{maker.noise()}，")
    document.add(maker.pick("身份证号", "证件号码：", "身份证：")).add(maker.cn_id(), "cn_id").add(
        maker.pick("，", "。", "；")
    )
    document.add(maker.pick("电话", "手机：", "联系方式 ", "请拨打")).add(maker.phone_cn(), "phone").add(
        maker.pick("，", "。", "\n")
    )
    document.add(maker.pick("邮箱", "发到", "电子邮件：")).add(maker.email(), "email").add(
        maker.pick("，", "。", "（已核实）")
    )
    document.add(maker.pick("银行卡", "卡号：")).add(maker.card(), "card").add(f"，{maker.noise()}，")
    return document.add(f"金额{maker.noise()}。")


def _structured(maker: Maker) -> Document:
    document = Document()
    document.add('{"id": "').add(maker.noise()).add('", "contact": "').add(maker.email(), "email").add('", "tel": "')
    phone: Callable[[], str] = maker.random.choice([maker.phone_cn, maker.phone_en])
    document.add(phone(), "phone").add('", "national_id": "').add(maker.cn_id(), "cn_id").add('", "note": "')
    return document.add(f"{maker.noise()}, {maker.noise()}").add('"}')


def documents(count: int, seed: int = 20261122) -> list[Document]:
    """``count`` texts, English, Chinese and JSON in turn; the same for the same seed."""
    maker = Maker(seed)
    kinds = (_english, _chinese, _structured)
    return [kinds[number % 3](maker) for number in range(count)]
