"""The hosts that commands may reach: what an entry allows, and what it never does."""

from __future__ import annotations

import pytest

from clew.sandbox.network_rules import parse_allowed_host, parse_network_rules

RULES = parse_network_rules(
    ["example.org", "*.Below.example", "other.example:8443", "10.0.0.5:8080", "[fd00::5]"]
)


@pytest.mark.parametrize(
    ("host", "port", "problem"),
    [
        ("example.org", 443, None),
        ("example.org", 80, None),
        ("example.org", 22, "port 22 of example.org is not in sandbox.hosts"),
        ("www.example.org", 443, "www.example.org is not in sandbox.hosts"),
        ("example.org.evil.test", 443, "example.org.evil.test is not in sandbox.hosts"),
        ("a.b.below.example", 443, None),
        ("below.example", 443, "below.example is not in sandbox.hosts"),
        ("other.example", 8443, None),
        ("other.example", 443, "port 443 of other.example is not in sandbox.hosts"),
        ("10.0.0.5", 8080, None),
        ("fd00::5", 443, None),
        ("169.254.169.254", 80, "169.254.169.254 is not in sandbox.hosts"),
    ],
)
def test_a_host_is_allowed_by_its_name_and_port(host: str, port: int, problem: str | None) -> None:
    assert RULES.find_host_problem(host, port) == problem


@pytest.mark.parametrize(
    ("address", "port", "refused"),
    [
        ("93.184.215.14", 443, False),
        ("10.0.0.5", 8080, False),
        ("10.0.0.5", 443, True),
        ("10.0.0.6", 8080, True),
        ("127.0.0.1", 443, True),
        ("169.254.169.254", 80, True),
        ("::ffff:169.254.169.254", 80, True),
        ("fd00:ec2::254", 80, True),
        ("fd00::5", 443, False),
    ],
)
def test_an_address_that_is_not_public_is_reached_only_if_it_is_listed_itself(
    address: str, port: int, refused: bool
) -> None:
    problem = RULES.find_address_problem("example.org", address, port)
    assert (problem is not None) is refused
    assert problem is None or problem.startswith(f"example.org is refused: {address} is ")


@pytest.mark.parametrize(
    "entry", ["", "https://example.org", "example.org/path", "a b", "x:0", "x:70000", "*", "[1:2]"]
)
def test_what_is_no_host_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_allowed_host(entry)
