"""The held-out redaction corpus: which texts hold personal data at which places, of values that nobody of ours has written?

The people, numbers and addresses come from Faker's providers for five countries, as Faker writes them: telephone numbers in no plan,
addresses on streets that are not there. Here they are put into letters, chats, logs, tables and JSON in the language of their country,
among numbers that only look alike. Who works on the detectors looks at ``TO_LOOK_AT`` and never into ``HELD_OUT``, which is tested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from faker import Faker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

HELD_OUT = tuple(range(9000, 9024))
TO_LOOK_AT = tuple(range(100, 112))
LOCALES = ("en_US", "en_GB", "zh_CN", "de_DE", "fr_FR")
DOCUMENTS = 40  # of each locale and seed

Label = tuple[int, int, str]


@dataclass(slots=True)
class Text:
    """A text, the property that holds it (empty: none) and where in it is what."""

    text: str = ""
    name: str = ""
    labels: list[Label] = field(default_factory=list)


# What stands in braces is made by a method of Person or Noise.
PROSE: dict[str, tuple[str, ...]] = {
    "en_US": (
        "Hi team, {name} moved last week. The new address is {address}. Please update order {order} before {date}.",
        "Customer called about invoice {invoice} ({price}). Callback number {phone}, email {email}.",
        "Payment with card {card} was declined on {timestamp}, trace {uuid}.",
        "For the background check: SSN {ssn}, lives at {address}.",
        "Reach me at {phone} or {email} -- build {version}, commit {hash}.",
        "The book (ISBN {isbn}) ships to {address}; tracking {tracking}, EAN {ean}.",
        "Part {sku} costs {price}, {count} in stock, next delivery {date}. Released as {version} on {timestamp}.",
        "{email} wrote: my card {card} was charged {price} twice, my cell is {phone}",
    ),
    "en_GB": (
        "Dear Sir or Madam, I have moved to {address}. Yours, {name}",
        "Please ring {phone} about order {order}, total {price}.",
        "NI number {nino}, e-mail {email}, see ticket {ticket}.",
        "Refund {price} to {iban}; reference {invoice}.",
        "Delivery for {name}, {address}, parcel {tracking}, by {date}.",
        "Version {version} of {sku} failed at {timestamp} with request id {uuid}; contact {email} or {phone}.",
        "Card no {card} expires 09/29, batch {hash}, ISBN {isbn}.",
    ),
    "zh_CN": (
        "您好，我是{name}，手机号{phone}，请把订单{order}寄到{address}，谢谢。",
        "客户身份证号{cn_id}，联系电话：{phone}，邮箱{email}。",
        "工单{ticket}：用户反映银行卡{card}被重复扣款{price}，时间{timestamp}。",
        "收货地址：{address}，收件人{name}，电话 {phone}，运单号{tracking}。",
        "版本{version}已于{date}发布，商品编号{sku}，库存{count}件，单价{price}，条码{ean}。",
        "他住在{address}。证件号码：{cn_id}。",
        "请发邮件到{email}，订单号{order}，流水号{invoice}，校验值{hash}",
    ),
    "de_DE": (
        "Sehr geehrte Damen und Herren, meine neue Anschrift lautet {address}. Kundennummer {order}.",
        "Bitte rufen Sie mich unter {phone} zurück, Rechnung {invoice} über {price}.",
        "Überweisung auf {iban}, Verwendungszweck {ticket}, am {date}.",
        "Tel.: {phone}, E-Mail: {email}, Version {version}",
        "Lieferung an {name}, {address}, Sendung {tracking}, Artikel {sku}.",
        "Kreditkarte {card} belastet mit {price}, Vorgang {uuid} um {timestamp}.",
    ),
    "fr_FR": (
        "Bonjour, j'ai déménagé au {address}. Commande {order}, montant {price}.",
        "Merci de m'appeler au {phone} ou d'écrire à {email}, dossier {ticket}.",
        "Numéro de sécurité sociale : {nir}, né le {date}.",
        "Virement vers {iban}, facture {invoice}.",
        "Livraison chez {name}, {address}, colis {tracking}, version {version}.",
        "Carte bancaire {card} débitée de {price} le {timestamp}, transaction {uuid}, article {sku}.",
        "Tél. {phone} - ISBN {isbn} - réf. {hash}",
    ),
}
LINES = (
    "{timestamp} INFO request={uuid} user={email} status=200 ms={count} ref={order}",
    "{timestamp} WARN payment card={card} amount={price} trace={hash}",
    "{order};{date};{price};{sku};{count};{ean};{email};{phone}",
    "| {ticket} | {email} | {phone} | {version} | {isbn} |",
    "--\n{name}\n{address}\nTel {phone}\n{email}",
    "Chapter {count}, Table 7: {count} Users on {date}, Room 12 Floor 3, {price}. {words}",
    "Gate 14 Berlin, {count} Items, see RFC 2119 Section 4, ISO 27001, {version}, MA {count}, {words}",
    "第{count}号文件，共12页，{date}第3次会议纪要，订单{order}，尾号8842，3楼2号会议室，{tracking}",
    "matrix [[12.5, 0.0031], [1024, 65536]] pi 3.14159265358979 {coordinates} bytes={count} {ean}",
    "sha256:{hash} {version} {timestamp} {uuid} {sku} {price} {mac} {coordinates}",
)
FIELDS: dict[str, tuple[str, ...]] = {
    "email": ("email", "contact", "user", "replyTo"),
    "phone": ("phone", "phone_number", "mobile", "tel", "contactPhone"),
    "card": ("card", "card_number", "pan", "paymentCard"),
    "address": ("address", "shipping_address", "deliveryAddress", "billTo", "note"),
    "order": ("order_id", "orderNumber", "reference"),
    "uuid": ("id", "trace_id", "requestId"),
    "hash": ("digest", "etag", "commit"),
    "timestamp": ("created_at", "updated", "ts"),
    "price": ("total", "amount", "price"),
    "version": ("version", "release"),
    "isbn": ("isbn", "product"),
    "ean": ("ean", "barcode", "gtin"),
    "sku": ("sku", "item", "part_no"),
    "tracking": ("tracking", "parcel", "shipment"),
    "invoice": ("invoice", "invoice_no"),
}
NATIONAL = {"en_US": "ssn", "en_GB": "nino", "zh_CN": "cn_id", "de_DE": "iban", "fr_FR": "nir"}
NATIONAL_FIELDS = {
    "ssn": ("ssn", "tax_id"), "nino": ("nino", "ni_number"), "cn_id": ("id_card", "身份证"), "iban": ("iban", "account"),
    "nir": ("nir", "numero_secu"),
}  # fmt: skip
KIND = {
    "email": "email", "phone": "phone", "card": "card", "address": "address", "ssn": "us_ssn", "cn_id": "cn_id",
    "iban": "iban", "nino": "national_id", "nir": "national_id",
}  # fmt: skip
OF_A_FORM = 0.6  # of Chinese addresses; the others are as Faker writes them
WIDE = {ord(digit): chr(ord(digit) - ord("0") + ord("０")) for digit in "0123456789"}
CHINESE = (
    "<市><区><路><段>段<n>号",
    "<省><市><区><路><n>号",
    "<市><区><路><n>弄<m>号<r>室",
    "<市><区><路><n>号<名>花园<m>幢<m>单元<r>室",
    "<省><市><区><路><向>段<n>号<m>号楼<r>",
    "<市><区><路><n>号院<m>号楼<m>单元<r>",
    "<省><市><区><名>村<m>组<n>号",
    "<市><区><名>里小区<m>栋<r>室",
    "<市><区><路><汉>号",
    "<市><区><路><全>号",
    "<市><区><路>甲<n>号",
    "<市><区><路><n>号附<m>号",
    "<市> <区> <路> <n> 号",
    "<省><市><区><路><n>-<m>号<m>层",
    "<縣市><區><街><段>段<n>號",
    "<縣市><區><街><段>段<n>巷<m>弄<m>號<m>樓",
    "<縣市><區><街><n>號<m>樓之<m>",
    "<縣市><區><街><段>段<汉>號",
    "<縣市><區><街><n>之<m>號",
    "<邮> <縣市><街><n>號之<m>",
    "<縣市><區>光明里<m>鄰<街><n>號",
    "<縣市><區><街><全>號",
)
_SLOT = re.compile(r"\{([a-z_]+)\}")


class Maker:
    """What stands for the slots of a template, by one Faker with one seed."""

    def __init__(self, locale: str, seed: int) -> None:
        self.fake = Faker(locale)
        self.plain, self.taiwan = Faker("en_US"), Faker("zh_TW")
        self.fake.seed_instance(seed)
        self.plain.seed_instance(seed + 1)
        self.taiwan.seed_instance(seed + 2)
        self.locale = locale
        self.random: Random = self.fake.random

    def make(self, slot: str) -> str:
        made: str = getattr(self, f"_{slot}")()
        return made

    def _name(self) -> str:
        return str(self.fake.name())

    def _email(self) -> str:
        return str(self.random.choice([self.fake.email, self.fake.company_email, self.fake.free_email])())

    def _phone(self) -> str:
        return str(self.fake.phone_number())

    def _address(self) -> str:
        """As on an envelope, or in one line."""
        if self.locale == "zh_CN" and self.random.random() < OF_A_FORM:
            return self.chinese_address(self.random.choice(CHINESE))
        address = str(self.fake.address())
        return self.random.choice([address, address.replace("\n", ", ")])

    def chinese_address(self, form: str) -> str:
        """Names are Faker's, of the mainland and of Taiwan; the forms are those in which people and offices write them."""
        number = self.random.randint
        said = {
            "省": self.fake.province(),
            "市": self.fake.city(),
            "区": self.fake.district() + "区",
            "路": self.fake.last_name()
            + self.random.choice(["山", "华", "宁", "安", "平", "德"])
            + self.random.choice("路街道"),
            "名": self.fake.last_name() + self.random.choice(["湖", "阳", "锦", "和"]),
            "縣市": self.taiwan.city().removesuffix("市").removesuffix("縣") + self.random.choice("市縣"),
            "區": self.random.choice(["大安", "信義", "中正", "三民", "板橋", "西屯"]) + self.random.choice("區鎮鄉"),
            "街": self.random.choice(["忠孝東", "民權西", "建國南", "文化", "復興", "光明"])
            + self.random.choice("路街"),
            "段": self.random.choice("一二三四五六七12345"),
            "向": self.random.choice("东南西北中"),
            "汉": self.random.choice(["八", "十二", "八十六", "一百零三", "二百"]),
            "全": str(number(1, 999)).translate(WIDE),
            "n": str(number(1, 999)),
            "m": str(number(1, 30)),
            "r": str(number(101, 2809)),
            "邮": str(number(100, 98999)).zfill(5),
        }
        return re.sub("<([^<>]+)>", lambda slot: said[slot[1]], form)

    def _card(self) -> str:
        number = str(self.fake.credit_card_number())
        sign = self.random.choice(["", "", " ", "-"])
        if len(number) == 15:
            return sign.join((number[:4], number[4:10], number[10:]))
        return sign.join(number[at : at + 4] for at in range(0, len(number), 4))

    def _ssn(self) -> str:
        return str(self.fake.ssn())

    _cn_id = _ssn

    def _nir(self) -> str:
        number = str(self.fake.ssn())
        return self.random.choice(
            [
                number,
                " ".join((number[0], number[1:3], number[3:5], number[5:7], number[7:10], number[10:13], number[13:])),
            ]
        )

    def _nino(self) -> str:
        """Faker's begin with ZZ and end with T, which no number in use does; the digits are its own."""
        number = str(self.fake.ssn())
        first, last = self.random.choice(["AB", "JK", "SP", "CE", "WM"]), self.random.choice("ABCD")
        return first + self.random.choice([number, number.replace(" ", "")])[2:-1] + last

    def _iban(self) -> str:
        number = str(self.fake.iban())
        return self.random.choice([number, " ".join(number[at : at + 4] for at in range(0, len(number), 4))])

    # What only looks alike.

    def _order(self) -> str:
        return str(
            self.random.choice(
                [
                    self.plain.bothify("ORD-########"),
                    self.plain.numerify("2026-#######"),
                    self.plain.numerify("#########"),
                    self.plain.numerify("30#############"),
                    self.plain.numerify("###-#######-#######"),
                ]
            )
        )

    def _invoice(self) -> str:
        return str(
            self.plain.random_element(
                [
                    self.plain.numerify("INV%####"),
                    self.plain.numerify("RE-2026-######"),
                    self.plain.numerify("%########"),
                ]
            )
        )

    def _ticket(self) -> str:
        return str(self.plain.bothify("???-#####").upper())

    def _tracking(self) -> str:
        return str(
            self.plain.random_element(
                [
                    self.plain.bothify("1Z??############").upper(),
                    self.plain.numerify("0034############"),
                    self.plain.bothify("RR#########??").upper(),
                ]
            )
        )

    def _uuid(self) -> str:
        return str(self.plain.uuid4())

    def _hash(self) -> str:
        return str(self.random.choice([self.plain.sha256, self.plain.sha1, self.plain.md5])())

    def _timestamp(self) -> str:
        at = self.plain.date_time()
        return str(
            self.random.choice(
                [
                    at.isoformat(),
                    f"{at:%Y-%m-%d %H:%M:%S}",
                    str(int(at.timestamp())),
                    str(int(at.timestamp() * 1000)),
                    f"{at:%Y%m%d%H%M%S}",
                ]
            )
        )

    def _date(self) -> str:
        at = self.plain.date_object()
        return str(self.random.choice([f"{at:%Y-%m-%d}", f"{at:%d/%m/%Y}", f"{at:%d.%m.%Y}", f"{at:%b %d, %Y}"]))

    def _version(self) -> str:
        return str(self.plain.numerify(self.random.choice(["v%.##.#", "%.#.#", "%#.0.####.###", "20%#.#.#-rc.#"])))

    def _price(self) -> str:
        return str(
            self.plain.numerify(self.random.choice(["$%##.##", "%,###.## EUR", "£%#.##", "¥%###.00", "%.###,## €"]))
        )

    def _isbn(self) -> str:
        return str(self.random.choice([self.plain.isbn13, self.plain.isbn10])())

    def _ean(self) -> str:
        return str(self.random.choice([self.plain.ean13, self.plain.ean8])())

    def _sku(self) -> str:
        return str(
            self.plain.bothify(self.random.choice(["SKU-######", "??-####-??", "########", "???###-##"])).upper()
        )

    def _count(self) -> str:
        return str(self.plain.random_int(1, 99999))

    def _words(self) -> str:
        return str(self.fake.paragraph())

    def _mac(self) -> str:
        return str(self.plain.mac_address())

    def _coordinates(self) -> str:
        return f"{self.plain.latitude()}, {self.plain.longitude()}"


def filled(template: str, maker: Maker) -> Text:
    found = Text()
    place = 0
    for slot in _SLOT.finditer(template):
        found.text += template[place : slot.start()]
        made = maker.make(slot[1])
        if slot[1] in KIND:
            found.labels.append((len(found.text), len(found.text) + len(made), KIND[slot[1]]))
        found.text += made
        place = slot.end()
    found.text += template[place:]
    return found


def _fields(maker: Maker) -> Iterator[Text]:
    """The properties of an object: some of a person, some of a thing."""
    names = FIELDS | {NATIONAL[maker.locale]: NATIONAL_FIELDS[NATIONAL[maker.locale]]}
    for slot in maker.random.sample(sorted(names), 6):
        text = filled(f"{{{slot}}}", maker)
        text.name = maker.random.choice(names[slot])
        yield text


@cache
def texts(seeds: tuple[int, ...]) -> list[Text]:
    found: list[Text] = []
    for seed in seeds:
        for locale in LOCALES:
            maker = Maker(locale, seed)
            for number in range(DOCUMENTS):
                if number % 4 == 0:
                    found += _fields(maker)
                else:
                    found.append(filled(maker.random.choice(PROSE[locale] if number % 4 < 3 else LINES), maker))
    return found
