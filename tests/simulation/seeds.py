"""Seeds that have failed once: each is run by a test for ever."""

from __future__ import annotations

#: The seed, and what it showed.
FAILED: dict[int, str] = {
    24: "a worker that lost its lease with a command failed, and told it as an error",
}
