"""The encodings in which programs save texts of many languages are found."""

import pytest

from preprocessing.reading.encoding import guess

TEXTS = {
    ("cp1252", "fr"): (
        "La livraison a été très rapide et le produit correspond à la description.",
        "Je suis déçu par la qualité, le téléphone s'est cassé après deux jours.",
        "Très bon rapport qualité-prix, je recommande à tous.",
        "Emballage abîmé à la réception, service client où personne ne répond.",
    ),
    ("cp1252", "es"): (
        "El envío llegó muy rápido y el producto es tal como se describe.",
        "Muy mala calidad, se rompió a los dos días.",
        "El teléfono está muy bien, lo recomiendo sin dudarlo.",
        "¿Cómo puedo devolverlo? ¡Excelente atención! La señal es débil y el niño está triste.",
    ),
    ("cp1252", "pt"): (
        "A entrega foi muito rápida e o produto é exatamente como descrito.",
        "Não funciona, péssima qualidade, não recomendo.",
        "Ótimo custo-benefício, já é a segunda vez que compro.",
        "Atenção: a caixa veio amassada e sem manual de instruções.",
    ),
    ("cp1252", "it"): (
        "La consegna è stata velocissima, il prodotto è perfetto.",
        "Qualità pessima, si è rotto subito, più soldi buttati.",
        "Però il servizio clienti è gentile.",
        "Non è come nella foto, perché il colore è diverso.",
    ),
    ("cp1252", "sv"): (
        "Leveransen var snabb och produkten är precis som beskriven.",
        "Mycket dålig kvalitet, gick sönder efter två dagar.",
        "Jag är väldigt nöjd och köper gärna igen.",
        "Förpackningen var skadad när den kom fram.",
    ),
    ("cp1252", "da"): (
        "Leveringen var hurtig, og produktet er præcis som beskrevet.",
        "Meget dårlig kvalitet, gik i stykker efter to dage.",
        "Jeg er meget tilfreds og køber gerne igen.",
        "Æsken var ødelagt, da den kom frem på døren.",
    ),
    ("cp1252", "fi"): (
        "Toimitus oli nopea ja tuote vastaa kuvausta täysin.",
        "Erittäin huono laatu, hajosi kahdessa päivässä.",
        "Olen tyytyväinen ja ostan mielelläni uudelleen.",
        "Hyvä hinta-laatusuhde, näppärä käyttää.",
    ),
    ("cp1252", "de"): (
        "Die Lieferung war schnell, das Gerät entspricht der Beschreibung.",
        "Sehr schlechte Qualität, nach zwei Tagen kaputt.",
        "Ich würde es wieder kaufen, schöne Grüße.",
        "Größe fällt zu klein aus, für 20 € zu teuer – „nie wieder“.",
    ),
    ("cp1252", "en"): (
        "It’s great — really “great”, cost £20 or €25.",
        "Don’t buy: naïve design… café style.",
        "Battery lasts 5 hours · nice.",
    ),
    ("cp1252", "is"): (
        "Afhendingin var fljót og varan er nákvæmlega eins og lýst var.",
        "Mjög léleg gæði, þetta bilaði eftir tvo daga.",
        "Ég er ánægð með þjónustuna og mæli með þessu við aðra.",
    ),
    ("cp1250", "pl"): (
        "Dostawa była bardzo szybka, produkt zgodny z opisem.",
        "Bardzo słaba jakość, zepsuł się po dwóch dniach.",
        "Jestem zadowolony i chętnie kupię ponownie.",
        "Opakowanie było uszkodzone, żądam zwrotu pieniędzy.",
    ),
    ("cp1250", "cs"): (
        "Doručení bylo rychlé a výrobek odpovídá popisu.",
        "Velmi špatná kvalita, rozbilo se po dvou dnech.",
        "Jsem spokojený a rád koupím znovu.",
        "Obal byl poškozený, žádám vrácení peněz, děkuji.",
    ),
    ("cp1250", "hu"): (
        "A szállítás gyors volt, a termék megfelel a leírásnak.",
        "Nagyon rossz minőség, két nap után elromlott.",
        "Elégedett vagyok, szívesen vásárolok újra.",
        "A csomagolás sérült volt, kérem a pénzem vissza, őszintén, nagyon gyűlölöm.",
    ),
    ("cp1250", "sk"): (
        "Doručenie bolo rýchle a výrobok zodpovedá popisu.",
        "Veľmi zlá kvalita, pokazil sa po dvoch dňoch.",
        "Som spokojný a rád kúpim znova.",
        "Obal bol poškodený, žiadam vrátenie peňazí.",
    ),
    ("cp1254", "tr"): (
        "Kargo çok hızlı geldi, ürün açıklamada yazdığı gibi.",
        "Çok kötü kalite, iki gün sonra bozuldu.",
        "Memnunum, tekrar alırım.",
        "Paket hasarlıydı, iade istiyorum, teşekkür ederim.",
    ),
    ("cp1251", "ru"): (
        "Доставка была быстрой, товар соответствует описанию.",
        "Очень плохое качество, сломалось через два дня.",
        "Я доволен и куплю ещё раз.",
    ),
    ("cp1251", "uk"): (
        "Доставка була швидкою, товар відповідає опису.",
        "Дуже погана якість, зламалося через два дні.",
        "Я задоволений.",
    ),
    ("cp1251", "bg"): (
        "Доставката беше бърза и продуктът отговаря на описанието.",
        "Много лошо качество, счупи се след два дни.",
    ),
    ("cp1253", "el"): (
        "Η παράδοση ήταν γρήγορη και το προϊόν όπως περιγράφεται.",
        "Πολύ κακή ποιότητα, χάλασε σε δύο μέρες.",
        "Είμαι ευχαριστημένος.",
    ),
    ("big5", "tw"): (
        "出貨速度很快，商品與描述相符。",
        "品質很差，兩天就壞了。",
        "非常滿意，會再回購。",
        "包裝破損，要求退款。",
    ),
    ("gb18030", "zh"): (
        "发货速度很快，商品与描述相符。",
        "质量很差，两天就坏了。",
        "非常满意，会再回购。",
        "包装破损，要求退款。",
    ),
    ("cp949", "ko"): (
        "배송이 빠르고 상품이 설명과 같습니다.",
        "품질이 매우 나쁘고 이틀 만에 고장났어요.",
        "만족합니다.",
        "포장이 파손되어 환불 요청합니다.",
    ),
    ("cp932", "ja"): (
        "配送が早く、商品は説明通りでした。",
        "品質がとても悪く、二日で壊れました。",
        "満足しています、また購入します。",
        "梱包が破損していたので返金を希望します。",
    ),
}


@pytest.mark.parametrize(("encoding", "language"), TEXTS)
def test_the_encoding_of_a_language(encoding, language):
    sentences = TEXTS[encoding, language]
    rows = [f"{n % 5 + 1};{sentences[n % len(sentences)]};{n}\n" for n in range(40)]
    data = "".join(rows).encode(encoding)
    name = guess(data)
    # German has the same letters in several encodings.
    assert name and data.decode(name) == data.decode(encoding)


def test_lines_of_utf_8_do_not_count():
    lines = ["Größe 42\n".encode(), "Größe 43\n".encode("cp1252")]
    assert guess(b"".join(lines)) == "WINDOWS-1252"
    assert guess(lines[0]) is None
    assert guess(b"\xff\0\xfe") is None
