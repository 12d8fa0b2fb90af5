"""
``python -m tests.mutations [NAME...]``: take each safeguard out in turn; its test must notice.

``--contracts`` takes those of the contracts of the session lifecycle: for each contract at least
two, noticed by its own test within 20 seconds, as a failure. With ids (``--contracts S1.8 S4``)
only those.

Works on a copy. Ends with 1 if a test did not notice, or failed before anything was taken out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contracts_table import CONTRACTS, contract_of
from tests.mutations.catalogue import ALL, Mutation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
_PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider")
#: Exit codes of pytest.
_PASSED, _FAILED, _HUNG = 0, 1, -1
#: Seconds within which a contract's test must fail, and after which a run is ended.
_SOON, _HANGS = 20.0, 120.0
#: Shorter waits than without a mutation: many a test waits in vain for what was taken out.
_WAITS = {"CLEW_TEST_SOON": "5", "CLEW_TEST_PATIENCE": "40"}
#: Mutations that each contract's own test must notice.
_LEAST = 2


class NoSafeguard(Exception):
    """The text of a safeguard does not stand in its file exactly once."""


def copy_into(folder: Path) -> None:
    leave_out = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave_out)
    shutil.copy(ROOT / "pyproject.toml", folder)


def run(folder: Path, *tests: str) -> int:
    """Pytest's verdict on the copy."""
    try:
        done = subprocess.run(
            [sys.executable, *_PYTEST, *tests],
            cwd=folder,
            env={**os.environ, **_WAITS, "PYTHONPATH": str(folder / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_HANGS * len(tests),
        )
    except subprocess.TimeoutExpired:
        return _HUNG
    if done.returncode not in (_PASSED, _FAILED):
        print(done.stdout)
    return done.returncode


def take_out(folder: Path, mutation: Mutation) -> str:
    """Change the copy; the text as it was."""
    file = folder / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise NoSafeguard(
            f"{mutation.name}: {mutation.file} has this text {text.count(mutation.old)} times,"
            f" not once:\n{mutation.old}"
        )
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Result of a test on a mutation."""

    mutation: Mutation
    result: str
    seconds: float

    @property
    def noticed(self) -> bool:
        return self.result == "noticed"


def verdict(folder: Path, mutation: Mutation, *, soon: float | None = None) -> Verdict:
    """Take the safeguard out, and have its test run."""
    before = take_out(folder, mutation)
    begun = time.monotonic()
    try:
        code = run(folder, mutation.test)
    finally:
        (folder / mutation.file).write_text(before, encoding="utf-8")
    seconds = time.monotonic() - begun
    result = {_FAILED: "noticed", _PASSED: "SURVIVED"}.get(code, f"pytest ended with {code}")
    if code == _FAILED and soon is not None and seconds > soon:
        result = "TOO LATE"
    return Verdict(mutation=mutation, result=result, seconds=seconds)


def chosen(names: Sequence[str]) -> list[Mutation]:
    known = {mutation.name: mutation for mutation in ALL}
    if unknown := set(names) - known.keys():
        sys.exit(f"there is no mutation {min(unknown)!r}; there are: {', '.join(known)}")
    return [known[name] for name in names] if names else list(ALL)


def by_contract(noticed: Iterable[Mutation]) -> dict[str, list[str]]:
    """For each contract of the session lifecycle the mutations that made its test fail."""
    found: dict[str, list[str]] = {contract.id: [] for contract in CONTRACTS}
    for mutation in noticed:
        if (proved := contract_of(mutation.test.rpartition("::")[2])) is not None:
            found[proved].append(mutation.name)
    return found


def report_contracts(noticed: Sequence[Mutation]) -> bool:
    """Print which mutations made each contract fail; whether there are enough for each."""
    found = by_contract(noticed)
    print("\n| contract | what is promised | fails without |\n|---|---|---|")
    for contract in CONTRACTS:
        print(f"| {contract.id} | {contract.what} | {', '.join(found[contract.id]) or 'NONE'} |")
    return all(len(names) >= _LEAST for names in found.values())


def of_contracts(wanted: Sequence[str]) -> list[Mutation]:
    """The mutations of some contracts, or of all, in the order of the contracts."""
    named = {mutation.name: mutation for mutation in ALL}
    return [
        named[name]
        for contract, names in by_contract(ALL).items()
        if not wanted or contract in wanted or contract.partition(".")[0] in wanted
        for name in names
    ]


def main_contracts(wanted: Sequence[str]) -> int:
    """Print, for each contract, what its own test notices and after how many seconds."""
    mutations = of_contracts(wanted)
    verdicts: list[Verdict] = []
    print("| contract | test | mutation | seconds | noticed |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="clew-mutations-") as name:
        folder = Path(name)
        copy_into(folder)
        for mutation in mutations:
            done = verdict(folder, mutation, soon=_SOON)
            verdicts.append(done)
            print(_contract_row(done), flush=True)
    counted = by_contract(done.mutation for done in verdicts if done.noticed)
    few = [one for one in counted if by_contract(mutations)[one] and len(counted[one]) < _LEAST]
    noticed = sum(done.noticed for done in verdicts)
    print(f"\n{noticed} of {len(verdicts)} noticed; with fewer than {_LEAST}: {few or 'none'}")
    return 0 if noticed == len(verdicts) and not few else 1


def _contract_row(done: Verdict) -> str:
    test = done.mutation.test.rpartition("::")[2]
    contract = contract_of(test)
    sentence = test.removeprefix("test_").split("_", 2)[2].replace("_", " ")
    told = f"{done.mutation.name}: without “{done.mutation.mechanism}”"
    return f"| {contract} | {sentence} | {told} | {done.seconds:.1f} | {done.result} |"


def report(folder: Path, mutations: Sequence[Mutation]) -> Iterator[bool]:
    """Print the table, a line as soon as it is known; whether each was noticed."""
    print("| mutation | what is taken out | test | result |\n|---|---|---|---|")
    for mutation in mutations:
        done = verdict(folder, mutation)
        test = mutation.test.rpartition("::test_")[2]
        print(f"| {mutation.name} | {mutation.mechanism} | {test} | {done.result} |", flush=True)
        yield done.noticed


def main(names: Sequence[str]) -> int:
    if "--contracts" in names:
        return main_contracts([name for name in names if name != "--contracts"])
    mutations = chosen(names)
    with tempfile.TemporaryDirectory(prefix="clew-mutations-") as name:
        folder = Path(name)
        copy_into(folder)
        for mutation in mutations:
            (folder / mutation.file).write_text(take_out(folder, mutation), encoding="utf-8")
        if run(folder, *dict.fromkeys(mutation.test for mutation in mutations)) != _PASSED:
            print("the tests fail before anything is taken out")
            return 1
        noticed = list(report(folder, mutations))
    print(f"\n{sum(noticed)} of {len(noticed)} noticed")
    failed = [mutation for mutation, was in zip(mutations, noticed, strict=True) if was]
    # Some of them, by name, tell nothing about the others.
    covered = bool(names) or report_contracts(failed)
    return 0 if all(noticed) and covered else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
