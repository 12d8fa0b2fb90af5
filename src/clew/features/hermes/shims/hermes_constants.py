"""Folders of Hermes Agent (``hermes_constants``)."""

from __future__ import annotations

import os
from pathlib import Path


def get_hermes_home() -> Path:
    """Return the folder that plugins share."""
    return Path(os.environ["HERMES_HOME"])


def get_default_hermes_root() -> Path:
    """Return the same folder: there are no profiles."""
    return get_hermes_home()


def display_hermes_home() -> str:
    """Return the folder for people."""
    return str(get_hermes_home())
