"""
Door for features: what a plugin imports to add to Clew.

A plugin is a module or object with a function ``register``, marked ``hookimpl``, that
declares on the ``Registry`` what it adds. It does no I/O: what it declares is called later.
"""

from __future__ import annotations

from clew.config.builtin_types import (
    DURATION,
    FLAG,
    PATH,
    SECRET,
    TEXT,
    TEXTS,
    URL,
    choice_type,
    integer_type,
)
from clew.config.fields import setting
from clew.core.doctor_finding import DoctorFinding, fail, ok, warn
from clew.core.health import PartHealth
from clew.core.policy_rule import CallNarrowing
from clew.core.side_answer import SideAnswer
from clew.core.tool_declaration import BoundTool
from clew.core.tool_facts import PathFact, ToolFacts
from clew.hooks.specs import hookimpl
from clew.plugin.context import AskModel, FeatureContext
from clew.plugin.declarations import CliEntry, Command, CommandCall, Metric, Note, WatchedText
from clew.plugin.memory import Memory, MemoryProvider
from clew.plugin.registry import Registry
from clew.plugin.settings_tables import SettingsSection
from clew.plugin.turn_context import TurnContext, get_turn_context, keep_permit
from clew.store.checks.check import Check, Violation, sql_check

__all__ = [
    "DURATION",
    "FLAG",
    "PATH",
    "SECRET",
    "TEXT",
    "TEXTS",
    "URL",
    "AskModel",
    "BoundTool",
    "CallNarrowing",
    "Check",
    "CliEntry",
    "Command",
    "CommandCall",
    "DoctorFinding",
    "FeatureContext",
    "Memory",
    "MemoryProvider",
    "Metric",
    "Note",
    "PartHealth",
    "PathFact",
    "Registry",
    "SettingsSection",
    "SideAnswer",
    "ToolFacts",
    "TurnContext",
    "Violation",
    "WatchedText",
    "choice_type",
    "fail",
    "get_turn_context",
    "hookimpl",
    "integer_type",
    "keep_permit",
    "ok",
    "setting",
    "sql_check",
    "warn",
]
