"""Invented exports of a support desk, an app store and a shop, as their programs write them."""

import csv
import io
import json
from random import Random

WORDS = (
    *("the", "printer", "answers", "slowly", "and", "nobody", "replied", "today", "but", "it"),
    *("works", "again", "after", "an", "update", "of", "app", "screen", "order", "delivery"),
)


def sentence(chance, words=12):
    """Return some words in random order."""
    return " ".join(chance.choices(WORDS, k=words))


def support_desk(rows=300):
    """Return tickets as CSV with semicolons in Windows-1252; none of the columns is known."""
    chance = Random(1)
    groups = ("Rechnung", "Lieferung", "Technik", "Rückgabe")
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["Ticket-Nr.", "Erstellt am", "Kategorie", "Betreff", "Beschreibung", "Status"])
    for number in range(rows):
        subject, body = f"Gerät {number}", f"Grüße: {sentence(chance)} für {number}"
        status = chance.choice(["offen", "zu"])
        day = f"{1 + number % 28:02d}.03.2024"
        writer.writerow([4711 + number, day, groups[number % 4], subject, body, status])
    return out.getvalue().encode("cp1252")


def app_store(rows=300):
    """Return reviews of an app as tab-separated values in UTF-16, with an answer to a few."""
    chance = Random(2)
    lines = ["Package Name\tReviewer Language\tStar Rating\tReview Title\tReview Text\tReply"]
    for number in range(rows):
        stars = number % 5 + 1
        reply = sentence(chance) if number % 9 == 0 else ""
        text = f"{sentence(chance)} {number}"
        lines.append(f"com.example.app\ten\t{stars}\tTitle {number}\t{text}\t{reply}")
    return "\r\n".join([*lines, ""]).encode("utf-16")


def shop(rows=300):
    """Return reviews of a German shop as JSON lines, with stars as text."""
    chance = Random(3)
    return "".join(
        json.dumps(
            {
                "artikel": f"A{number % 7}",
                "bewertung": f"{number % 5 + 1},0 von 5 Sternen",
                "titel": f"Titel {number}",
                "rezension": f"{sentence(chance)} für {number}",
                "datum": "2024-03-01",
            },
            ensure_ascii=False,
        )
        + "\n"
        for number in range(rows)
    ).encode()
