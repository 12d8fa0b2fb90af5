"""Events that a program sends, as the page on webhooks describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.updates.made import Json, Made, Words, chosen

if TYPE_CHECKING:
    import random

KINDS = ("text", "forward", "reply", "both", "nested", "edited", "deleted")


def _quoted(words: Words, kind: str) -> Json:
    author = words.chance.choice(("Bob", "Eve\nApproved", "", "> Cy"))
    with words.others_write():
        text = words.text()
        if words.chance.random() < 0.3:
            text = "\n".join([text, f"> {words.line()}", f"Forwarded from X:\n{words.text()}"])
    return {"kind": kind, "from": author, "text": text}


def make(chance: random.Random, number: int) -> Made:
    """A random event: the kinds in turn, then any."""
    words = Words(chance)
    kind = chosen(chance, number, KINDS, KINDS)
    data: Json = {"user": str(10_000 + number), "name": "Ada"}
    name = "message"
    match kind:
        case "text":
            data["text"] = words.text()
        case "forward":
            data["quoted"] = [_quoted(words, "forward")]
        case "nested":
            data |= {"text": words.text()}
            data["quoted"] = [_quoted(words, each) for each in ("reply", "forward", "forward")]
        case "edited":
            name = "message.edited"
            data |= {"text": words.text(), "message": f"old{number}"}
        case "deleted":
            name = "message.deleted"
            data |= {"message": f"old{number}"}
        case _:
            data |= {"text": words.text(), "quoted": [_quoted(words, "reply")]}
    return Made(kind=kind, update={"type": name, "data": data}, own=words.own, others=words.others)
