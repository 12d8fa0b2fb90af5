"""
``python -m tests.simulation --seed N``: run one seed, or those from there on.

With ``--turns`` until so many turns were run, with ``--shrink`` a seed that fails is shrunk, with
``--twice`` each seed must do the same a second time. Ends with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import structlog

from tests.simulation.shrink import Shrunk, shrink
from tests.simulation.world import Report, Size, run_seed


def main() -> int:
    """Run the seeds that the command line asks for."""
    args = _parse()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    # What a crash leaves is never awaited, and collected in vain.
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    size = Size(gateways=args.gateways, rooms=args.rooms, messages=args.messages, every=args.every)
    total, wrong, begun, seed = Report(seed=args.seed), 0, time.perf_counter(), args.seed
    report = total
    while seed == args.seed or total.turns < args.turns:
        report = run_seed(seed, size, trace=args.trace, facts=args.facts is not None)
        if args.facts is not None:
            with Path(args.facts).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(fact) + "\n" for fact in report.facts)
        add(total, report)
        if args.twice and run_seed(seed, size).digest != report.digest:
            report.wrong.append("the second time it was different")
        if report.wrong:
            wrong += 1
            tell(report)
            if args.shrink and (small := shrink(seed, size)) is not None:
                tell_shrunk(small, size, trace=args.trace)
            if args.stop:
                break
        seed += 1
    seconds = time.perf_counter() - begun
    print(json.dumps({
        "seeds": seed - args.seed, "turns": total.turns, "steps": total.steps,
        "checks": total.checks, "virtual": round(total.virtual), "wrong": wrong,
        "seconds": round(seconds, 2), "digest": report.digest, "faults": total.faults,
    }))  # fmt: skip
    return 1 if wrong else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--rooms", type=int, default=5)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--facts", help="file for what happened, a line for each fact")
    for name in ("trace", "twice", "shrink", "stop"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def add(total: Report, report: Report) -> None:
    """Add what a seed has counted."""
    total.turns += report.turns
    total.steps += report.steps
    total.checks += report.checks
    total.virtual += report.virtual
    total.faults += Counter(report.faults)


def tell(report: Report) -> None:
    """Print what is wrong with a seed."""
    for line in report.trace or ():
        print(line)
    for sentence in report.wrong:
        print(f"seed {report.seed}: {sentence}")
    print(f"repeat it: python -m tests.simulation --seed {report.seed} --trace", flush=True)


def tell_shrunk(small: Shrunk, size: Size, *, trace: bool) -> None:
    """Print what is left of a seed."""
    seed = small.report.seed
    print(f"seed {seed}, shrunk in {small.tries} runs: deeds {sorted(small.deeds)}")
    print(f"faults: {[kind for _, kind in small.report.happened]}")
    again = run_seed(seed, size, left_out=small.left_out, deeds=small.deeds, trace=trace)
    tell(again)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of strings are walked in the same order in each run.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main())
