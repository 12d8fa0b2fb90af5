"""Folders of skills as other programs publish them, and those that cannot be used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: As the specification and Claude have it.
CLAUDE = """\
---
name: pdf-forms
description: Fill in PDF forms. Use when a person has a form to complete.
license: Apache-2.0
compatibility: Needs poppler
allowed-tools: Read, Bash(pdftotext:*), NotebookEdit
disable-model-invocation: false
metadata:
  version: "1.2"
---
# PDF forms

Run scripts/fields.py, and see references/forms.md.
"""
#: As Hermes has it, in a folder for its category.
HERMES = """\
---
name: arxiv
description: "Search papers on arXiv: by author, title or subject."
version: 1.0.0
author: Somebody
license: MIT
platforms: [linux, macos, windows]
prerequisites:
  commands: [no-such-program-here]
metadata:
  hermes:
    tags: [Research, Papers]
    related_skills: [pdf-forms]
---
Ask export.arxiv.org for the feed.
"""
#: As OpenClaw has it: its part of the metadata is JSON.
OPENCLAW = """\
---
name: weather
description: Get current weather and forecasts (no API key required).
homepage: https://wttr.in/:help
user-invocable: true
metadata:
  {
    "openclaw":
      {
        "emoji": "☔",
        "os": ["darwin", "linux"],
        "requires":
          { "bins": ["sh"], "anyBins": ["no-such-a", "no-such-b"], "env": ["NO_SUCH_KEY"] },
      },
  }
---
curl wttr.in/London
"""


def write_skill(folder: Path, text: str | bytes, **files: str) -> Path:
    """Write a skill; the names of its other files have ``__`` for a slash."""
    folder.mkdir(parents=True)
    content = text.encode() if isinstance(text, str) else text
    (folder / "SKILL.md").write_bytes(content)
    for name, content_of in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content_of, encoding="utf-8")
    return folder


def make_skill(name: str, description: str, body: str = "Do it.", more: str = "") -> str:
    """Return a plain ``SKILL.md``."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n"


def write_published(folder: Path) -> None:
    """Write a skill of each program."""
    write_skill(
        folder / "pdf-forms", CLAUDE,
        scripts__fields_py="print('fields')\n", references__forms_md="See https://forms.example.org/x\n",
    )  # fmt: skip
    write_skill(folder / "research" / "arxiv", HERMES)
    write_skill(folder / "weather", OPENCLAW)


def write_broken(folder: Path, outside: Path) -> dict[str, str]:
    """Write what cannot be used; return a part of the reason for each."""
    write_skill(folder / "no-matter", "# No front matter\n")
    write_skill(folder / "no-end", "---\nname: no-end\n")
    write_skill(folder / "bad-yaml", "---\nname: [a\ndescription: {\n---\nx\n")
    write_skill(folder / "nothing", "---\nname: nothing\n---\n")
    write_skill(folder / "latin", b"---\nname: latin\ndescription: caf\xe9\n---\nx\n")
    write_skill(folder / "nul", make_skill("nul", "A", "zero\0"))
    named = write_skill(folder / "name", make_skill("name", "With the name of a file in Latin-1"))
    (named / os.fsdecode(b"caf\xe9")).write_text("coffee")
    write_skill(folder / "huge", make_skill("huge", "A long one", "x" * 10_000_000))
    linked = write_skill(folder / "leaves", make_skill("leaves", "It leads out"))
    (linked / "key").symlink_to(outside / "secret")
    (folder / "elsewhere").symlink_to(write_skill(outside / "own", make_skill("own", "Elsewhere")))
    write_skill(folder / "z-twice", make_skill("plain", "The second of this name"))
    return {
        "no-matter": "no front matter",
        "no-end": "has no end",
        "bad-yaml": "is not YAML",
        "nothing": "has no description",
        "latin": "not UTF-8",
        "nul": "the character NUL",
        "name": "the name of a file is not UTF-8",
        "huge": "bytes, and 200,000 are allowed",
        "leaves": "leads out of its folder",
        "elsewhere": "symbolic link",
        "z-twice": "has the same name",
    }


def write_odd(folder: Path) -> None:
    """Write what can be used though it is not as it should be."""
    write_skill(folder / "plain", make_skill("plain", "A plain one"))
    write_skill(folder / "mark", "\ufeff" + make_skill("mark", "With a byte order mark"))
    write_skill(folder / "windows", make_skill("windows", "With CRLF").replace("\n", "\r\n"))
    write_skill(folder / "a" / "b" / "c" / "deep", make_skill("deep", "In nested folders"))
    write_skill(folder / "colon", make_skill("colon", "Use it when: a colon is not quoted"))
    write_skill(folder / "Title Case", make_skill("Title Case", "Named with a space"))
    write_skill(
        folder / "untold", "---\nlicense: MIT\n---\n# Title\n\nIts first paragraph.\n\nMore.\n"
    )
