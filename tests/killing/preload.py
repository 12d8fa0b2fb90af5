"""Imports of the process from which the others are forked: all that a turn needs, no thread."""

from __future__ import annotations

import gc

# Imported by name when the first loop runs.
import anyio._backends._asyncio  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]

import clew.cli.chat  # noqa: F401  # pyright: ignore[reportUnusedImport]
import clew.cli.sessions  # noqa: F401  # pyright: ignore[reportUnusedImport]
import clew.gateway.channels.telegram.channel  # noqa: F401  # pyright: ignore[reportUnusedImport]
from clew.agent.models import ModelSpec, build_model
from tests.channels import serving
from tests.features import killed_tasks
from tests.killing import child, gateways

__all__ = ["child", "gateways", "killed_tasks", "serving"]

# The libraries of a model are imported when the first one is made.
build_model(ModelSpec(name="openai-chat:fake-model", base_url="http://127.0.0.1:1/v1"))
# A child never frees these objects: its collector need not visit, and so copy, them.
gc.collect()
gc.freeze()
