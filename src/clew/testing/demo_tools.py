"""
``python -m clew.testing.demo_tools``: a task with tools, killed in the middle.

Only the model and the web page are fakes, on loopback: ``clew chat`` runs as usual on a terminal,
with a home and a workspace that are removed at the end.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, Self

from clew.testing.demo_terminal import DemoTerminal
from clew.testing.provider import Calls, FakeProvider, ProviderRequest, Reply, ScriptedCall, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK: Final = "Report on sales.csv, in euros and in dollars, with a chart."
#: Said by the model before its last call; while it says this, Clew is killed.
LAST_WORDS: Final = "I have the rate. Now I write the report."
NO_SANDBOX: Final = "No sandbox works here, so there is no run_python: clew doctor says why."
_SALES: Final = "month,region,euros\n" + "".join(
    f"2026-{month:02},{region},{euros}\n"
    for month, north, south in ((1, 120, 80), (2, 90, 95), (3, 150, 60))
    for region, euros in (("north", north), ("south", south))
)
_PAGE: Final = b"<html><title>Rates</title><body><p>1 EUR = 1.10 USD</p></body></html>"
#: The script that the model has the agent run; each run adds a line to ``runs.txt``.
_CODE: Final = """\
import csv
open("runs.txt", "a").write("run\\n")
totals = {}
for row in csv.DictReader(open("sales.csv")):
    totals[row["region"]] = totals.get(row["region"], 0) + int(row["euros"])
bars = "".join(
    f'<rect x="{10 + 60 * n}" y="{400 - euros}" width="50" height="{euros}"/>'
    for n, euros in enumerate(totals.values())
)
open("chart.svg", "w").write(f'<svg xmlns="http://www.w3.org/2000/svg">{bars}</svg>\\n')
print(totals)
"""


def main() -> int:
    """Run the demo; return 0, or 1 if something expected did not happen."""
    try:
        with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
            _run_demo(Path(folder).resolve())
    except TimeoutError as error:
        sys.stdout.write(f"\n{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run_demo(folder: Path) -> None:
    home, work = folder / "home", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    (work / "sales.csv").write_text(_SALES)
    with _PageServer() as pages, FakeProvider(_ScriptedModel(pages.url)) as provider:
        (home / "config.toml").write_text(_make_config(provider.openai_url, work))
        _narrate("A task with files, a script and a web page. A rule asks before pages.")
        with DemoTerminal(home) as chat:
            chat.wait_for("> ")
            chat.type_line(TASK)
            chat.wait_for("y allows it", unless=NO_SANDBOX)
            chat.type_line("y")
            chat.wait_for(LAST_WORDS[:15])
            chat.kill()
        _narrate("kill -9, in the middle of the answer. Clew is started again.")
        with DemoTerminal(home) as chat:
            chat.wait_for("chart.svg.")
            chat.wait_for("> ")
        _narrate("What is in the workspace, and what happened:")
        _print_summary(work, provider, pages)


def _make_config(model_url: str, work: Path) -> str:
    return f"""\
[model]
name = "openai-chat:scripted"
base_url = "{model_url}"

[sandbox]
workspace = "{work}"

[web]
allow_private = ["127.0.0.1"]

[[approvals.rule]]
tool = "web_fetch"
then = "ask"
"""


class _ScriptedModel:
    """A model that does one step for each result; the first time, it is slow at the report."""

    def __init__(self, pages: str) -> None:
        self._pages = pages
        self._was_slow = False

    def __call__(self, request: ProviderRequest) -> Reply:
        if "run_python" not in request.tools:
            return Text(NO_SANDBOX)
        results = [result.text for message in request.messages for result in message.results]
        if len(results) == len(self._steps):
            return Text("Done: the report is in report.md, the chart in chart.svg.")
        if len(results) < 3:
            return Calls([self._steps[len(results)]])
        slow, self._was_slow = not self._was_slow, True
        call = ScriptedCall(
            "write_file", {"path": "report.md", "content": _write_report(results[1:])}
        )
        return Calls([call], text=LAST_WORDS, chunks=8, delay=0.4 if slow else 0.0)

    @property
    def _steps(self) -> Sequence[ScriptedCall]:
        return (
            ScriptedCall("read_file", {"path": "sales.csv"}),
            ScriptedCall("run_python", {"code": _CODE}),
            ScriptedCall("web_fetch", {"url": f"{self._pages}/rates"}),
            ScriptedCall("write_file"),
        )


def _write_report(results: Sequence[str]) -> str:
    """Return the report, from what the script printed and what the page says."""
    totals = re.findall(r"'(\w+)': (\d+)", results[0])
    (rate,) = re.findall(r"1 EUR = ([\d.]+) USD", results[1])
    lines = [
        f"| {region} | {euros} | {int(euros) * float(rate):.0f} |\n" for region, euros in totals
    ]
    return f"| region | EUR | USD |\n|---|---|---|\n{''.join(lines)}\n![chart](chart.svg)\n"


def _print_summary(work: Path, provider: FakeProvider, pages: _PageServer) -> None:
    sent = provider.requests
    last = sent[-1].json or {}
    called = Counter(
        call["function"]["name"]
        for message in last["messages"]
        for call in message.get("tool_calls") or ()
    )
    report = (work / "report.md").read_text()
    runs = len((work / "runs.txt").read_text().splitlines())
    cut = sum(each.outcome != "answered" for each in sent)
    bars = (work / "chart.svg").read_text().count("<rect")
    _print_block(report)
    _print_block(
        f"chart.svg: {bars} bars\n"
        f"requests to the model: {len(sent)}, cut off: {cut}\n"
        f"calls: {', '.join(f'{name} {count}' for name, count in called.items())}\n"
        f"runs of the script: {runs}\n"
        f"requests to the page: {pages.count}"
    )


class _PageServer:
    """A web server with one page, which counts its requests."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages.count += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(_PAGE)))
                self.end_headers()
                self.wfile.write(_PAGE)

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _narrate(text: str) -> None:
    sys.stdout.write(f"\n{text}\n\n")
    sys.stdout.flush()


def _print_block(text: str) -> None:
    sys.stdout.write("".join(f"   {line}".rstrip() + "\n" for line in text.splitlines()) + "\n")


if __name__ == "__main__":
    sys.exit(main())
