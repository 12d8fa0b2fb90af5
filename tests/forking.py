"""Processes are forked from one that has imported everything and has started no thread."""

from __future__ import annotations

import multiprocessing

#: To start one takes 10 ms so; with ``spawn`` each reads Clew and the library of models anew.
FORKS = multiprocessing.get_context("forkserver")
# The main module of a test run is imported by each child, which is free if it is there already.
FORKS.set_forkserver_preload(["pytest", "tests.killing.preload"])
