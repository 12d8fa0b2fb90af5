"""Fields that Clew adds to the requests of other protocols, and reads in them."""

from __future__ import annotations

from typing import Final

#: In ``_meta`` of MCP and ACP: a request that may be sent again is carried out once under its key.
KEY_FIELD: Final = "clew.dev/idempotency-key"
