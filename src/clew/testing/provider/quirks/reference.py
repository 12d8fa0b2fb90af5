"""The reference page of quirks: ``python -m clew.testing.provider.quirks.reference PAGE``."""

from __future__ import annotations

from collections import defaultdict

from clew.generated_page import write_page
from clew.testing.provider.quirks.quirk import QuirkCase, build_cases
from clew.testing.provider.quirks.table import QUIRKS

_PAGE_HEAD = """\
# Quirks of model servers

This page is made from the table of quirks in `clew.testing.provider.quirks`; do not edit it.

Many servers speak OpenAI's Chat Completions or Responses format, or Anthropic's Messages format,
and deviate from it. Clew reads each of the replies below with the one request that was made: the
words, thinking, tool calls and usage are those that the server meant. *S* means in a stream, *w* in
a reply that was not streamed; `-` means that the quirk cannot occur there. A test sends each of
them, byte by byte, to the real client libraries.

Three rules hold for everything else:

* A stream that ends without saying why, and without `[DONE]`, `message_stop` or
  `response.completed`, was cut: the attempt is stored and the request is made again.
* Fields, parts, blocks and events that nobody knows are left out, and named once in the log
  (`provider_sent_unknown`).
* An option that a server refuses by its name (`stream_options`, `max_completion_tokens`) is left
  out from then on; the request is made again once.

| quirk | the server sends | chat | responses | messages | is read as |
|---|---|---|---|---|---|
"""


def render_page() -> str:
    """Return the page."""
    found: defaultdict[str, list[QuirkCase]] = defaultdict(list)
    for case in build_cases(QUIRKS):
        found[case.quirk.id].append(case)
    return _PAGE_HEAD + "".join(map(_render_row, found.values()))


def _render_row(of_one: list[QuirkCase]) -> str:
    quirk = of_one[0].quirk
    where = [_render_modes(of_one, form) for form in ("chat", "responses", "messages")]
    if quirk.failure is not None:
        read = f"error `{quirk.failure[0]}`, in the server's words"
    elif quirk.usage == (0, 0):
        read = "the answer; usage not reported"
    elif quirk.reply.calls:
        read = "the calls"
    else:
        read = "thinking and answer" if quirk.thinking or quirk.reply.thinking else "the answer"
    return f"| `{quirk.id}` | {quirk.description} | {' | '.join(where)} | {read} |\n"


def _render_modes(of_one: list[QuirkCase], form: str) -> str:
    ways = {case.stream for case in of_one if case.format == form}
    return ", ".join([*(["S"] if True in ways else []), *(["w"] if False in ways else [])]) or "-"


if __name__ == "__main__":
    write_page(render_page())
