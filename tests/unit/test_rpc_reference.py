"""Page and document of JSON-RPC say what the types say, and all that is promised is there."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import clew
from clew.distribution import VERSION
from clew.wire.openrpc import build_openrpc, render_document, render_page
from scripts import web_types
from scripts.rpc_reference import list_methods

METHODS = list_methods()
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
AGAIN = "write it anew: python -m scripts.rpc_reference docs/reference"

#: Names that must exist.
PROMISED = (
    "conversation.list conversation.open conversation.new conversation.resume conversation.rename "
    "conversation.branch conversation.rewind conversation.undo conversation.retry "
    "conversation.close conversation.search conversation.delete session.compact prompt.submit "
    "turn.interrupt approval.respond queue.list queue.cancel queue.edit commands.list commands.run "
    "complete config.get config.set model.list model.set events.subscribe"
)


def test_the_page_and_the_document_are_up_to_date() -> None:
    assert (REFERENCE / "rpc.md").read_text(encoding="utf-8") == render_page(METHODS), AGAIN
    told = (REFERENCE / "rpc.json").read_text(encoding="utf-8")
    assert told == render_document(VERSION, METHODS), AGAIN


def test_the_types_of_the_dashboard_are_up_to_date() -> None:
    written = (Path(clew.__file__).parent / "web" / web_types.FILE_NAME).read_text(encoding="utf-8")
    assert written == web_types.render_types(), (
        "write them anew: python -m scripts.web_types src/clew/web"
    )


def test_every_promised_method_is_there() -> None:
    names = {method.name for method in METHODS}
    assert set(PROMISED.split()) <= names
    assert len(names) == len(METHODS)


def test_every_reference_in_the_document_leads_somewhere() -> None:
    told = build_openrpc("0", METHODS)
    for reference in _references(told):
        found: Any = told
        for step in reference.removeprefix("#/").split("/"):
            assert step in found, reference
            found = found[step]


def _references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(value)))


@cache
def _described() -> list[Any]:
    return build_openrpc("0", METHODS)["methods"]


def test_each_method_is_described_by_names_that_its_arguments_have() -> None:
    described = _described()
    told = [(one["name"], [param["name"] for param in one["params"]]) for one in described]
    assert told == [(method.name, list(method.params.model_fields)) for method in METHODS]
    assert [one["name"] for one in described if not one["summary"].endswith(".")] == []
    json.dumps(described)
