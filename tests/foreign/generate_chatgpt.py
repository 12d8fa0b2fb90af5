"""
Make a data export in the form of ChatGPT's.

The service writes exports, no program that runs here does; so this follows its public form::

    python tests/foreign/generate_chatgpt.py FOLDER 50
"""
# pyright: basic

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

RANDOM = random.Random(7)
BEGUN = 1_767_600_000.0
PICTURE = bytes.fromhex("89504e470d0a1a0a") + b"\0" * 24


class Tree:
    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0
        self.now = BEGUN + number * 1000
        self.mapping = {
            "client-created-root": {
                "id": "client-created-root",
                "message": None,
                "parent": None,
                "children": [],
            }
        }
        self.last = "client-created-root"

    def add(
        self,
        role: str,
        content: dict,
        *,
        parent: str | None = None,
        name=None,
        recipient="all",
        **metadata,
    ) -> str:
        self.count += 1
        self.now += 1.25
        key = f"{self.number:08x}-0000-4000-8000-{self.count:012x}"
        message = {
            "id": key,
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": None if role == "system" else self.now,
            "update_time": None,
            "content": content,
            "status": "finished_successfully",
            "end_turn": True if role == "assistant" and recipient == "all" else None,
            "weight": 1.0,
            "metadata": metadata,
            "recipient": recipient,
            "channel": None,
        }
        before = parent or self.last
        self.mapping[key] = {"id": key, "message": message, "parent": before, "children": []}
        self.mapping[before]["children"].append(key)
        self.last = key
        return key

    def say(self, role: str, text: str, **more) -> str:
        return self.add(role, {"content_type": "text", "parts": [text]}, **more)

    def done(self) -> dict:
        name = f"{self.number:08x}-aaaa-4000-8000-000000000000"
        return {
            "title": f"Garden {self.number}",
            "create_time": BEGUN + self.number * 1000,
            "update_time": self.now,
            "mapping": self.mapping,
            "moderation_results": [],
            "current_node": self.last,
            "conversation_id": name,
            "id": name,
            "default_model_slug": "gpt-5",
            "is_archived": False,
        }


def add_pictures(tree: Tree, number: int) -> None:
    asset = f"file-{number:04d}abc"
    part = {
        "content_type": "image_asset_pointer",
        "asset_pointer": f"file-service://{asset}",
        "size_bytes": len(PICTURE),
        "width": 1,
        "height": 1,
    }
    about = {"id": asset, "name": "rose.png", "size": len(PICTURE), "mime_type": "image/png"}
    tree.add(
        "user",
        {"content_type": "multimodal_text", "parts": [part, "What is this?"]},
        attachments=[about],
    )
    tree.say("assistant", "A rose.", model_slug="gpt-4o")
    tree.add(
        "assistant",
        {"content_type": "text", "parts": ['{"prompt": "a rose"}']},
        recipient="dalle.text2im",
        model_slug="gpt-4o",
    )
    made = {**part, "asset_pointer": "sediment://file_lost"}
    tree.add("tool", {"content_type": "multimodal_text", "parts": [made]}, name="dalle.text2im")
    tree.say("assistant", "Here it is.", model_slug="gpt-4o")


def make_conversation(number: int) -> dict:
    tree = Tree(number)
    tree.say("system", "", is_visually_hidden_from_conversation=True)
    kind = ("plain", "python", "edited", "again", "picture", "thoughts", "instructions")[number % 7]
    if kind == "instructions":
        tree.add(
            "user",
            {
                "content_type": "user_editable_context",
                "user_profile": "Ada",
                "user_instructions": "Be short.",
            },
            is_user_system_message=True,
        )
    for turn in range(RANDOM.randint(1, 3)):
        asked = tree.say("user", f"Question {turn}: what grows here?")
        if kind == "python":
            tree.add(
                "assistant",
                {"content_type": "code", "language": "unknown", "text": "print(1)"},
                recipient="python",
                model_slug="gpt-5",
            )
            tree.add("tool", {"content_type": "execution_output", "text": f"{turn}"}, name="python")
        if kind == "thoughts":
            tree.add(
                "assistant",
                {
                    "content_type": "thoughts",
                    "thoughts": [{"summary": "Thinking", "content": "Roses?"}],
                },
                model_slug="gpt-5",
            )
            tree.add(
                "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 seconds"}
            )
        tree.say("assistant", f"Answer {turn}: roses.", model_slug="gpt-5")
        if kind == "again":
            tree.say(
                "assistant", f"Answer {turn}, again: tulips.", parent=asked, model_slug="gpt-5"
            )
    if kind == "edited":
        before = tree.mapping[tree.mapping[tree.last]["parent"]]["parent"]
        tree.say("user", "The question, edited", parent=before)
        tree.say("assistant", "The other answer", model_slug="gpt-5")
    if kind == "picture":
        add_pictures(tree, number)
    return tree.done()


def main(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = [make_conversation(number) for number in range(count)]
    (folder / "conversations.json").write_text(json.dumps(made, ensure_ascii=False))
    for number in range(4, count, 7):
        (folder / f"file-{number:04d}abc-rose.png").write_bytes(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
