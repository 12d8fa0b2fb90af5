"""Secrets that stand in messages and settings stand in no log, error or listing."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

import pytest

from clew.testing import Fail, FakeProvider, Text
from clew.testing.telegram import FakeTelegram, FaultInjector
from tests.acceptance.program import Clew, until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest

#: Prefixes of the keys of well-known services.
SHAPES = (
    "sk-", "sk-proj-", "sk-ant-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xapp-", "AKIA",
    "ASIA", "AIza", "ya29.", "hf_", "npm_", "pypi-", "dop_v1_", "SG.", "key-", "sq0atp-",
    "rk_live_", "whsec_", "eyJhbGciOiJIUzI1NiJ9.", "Bearer ", "password=", "postgres://me:",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_b113_b114_thirty_secrets_are_in_no_log_error_or_listing(
    clew: Clew, tmp_path: Path
) -> None:
    said = [f"{shape}{secrets.token_hex(16)}" for shape in SHAPES]
    kept = {name: secrets.token_hex(16) for name in ("bot", "model", "api", "extra")}
    faults = FaultInjector(cut=0.1, lost=0.1, broken=0.2, throttled=0.1, seed=3)
    token = f"123456:{kept['bot']}"
    log = tmp_path / "serve.log"

    def script(request: ProviderRequest) -> Text | Fail:
        if "AKIA" in request.user_texts[-1]:
            wrong = f"Incorrect API key provided: {kept['model']}"
            return Fail(status=401, body={"error": {"message": wrong, "type": "invalid_request"}})
        return Text("Kept.")

    with FakeProvider(script) as provider, FakeTelegram(token=token, faults=faults) as telegram:
        settings = {
            "MODEL__API_KEY": kept["model"],
            "API__TOKEN": kept["api"],
            "CHANNELS__TELEGRAM__TOKEN": token,
            "CHANNELS__TELEGRAM__BASE_URL": telegram.base_url,
            "CHANNELS__TELEGRAM__ALLOW": "*",
            "CHANNELS__SECOND__KIND": "webhook",
            "CHANNELS__SECOND__BASE_URL": "http://127.0.0.1:9/nobody",
            "CHANNELS__SECOND__SECRET": kept["extra"],
        }
        program = clew.asking(provider).with_env(
            {f"CLEW_{name}": value for name, value in settings.items()}
        )
        with log.open("w") as errors, program.serving(errors=errors):
            for user, secret in enumerate(said, 1):
                telegram.post_message(f"Keep {secret}", user=user, name=f"{secret} Ada")
            telegram.block_bot(len(said))
            telegram.send_update("message", {"text": said[0], "from": said[1]})
            until(lambda: all(telegram.list_texts(user) for user in range(1, len(said))))
            until(lambda: "update_not_understood" in log.read_text())
        listings = [
            program.run(*command)
            for command in (["config", "show"], ["config", "show", "--json"], ["doctor"])
        ]
        answers = "".join(message.text for message in telegram.messages)
    told = log.read_text() + "".join(each.out + each.err for each in listings)
    assert len(said) + len(kept) == 30
    assert json.loads(listings[1].out)
    assert any("update_not_understood" in line for line in told.splitlines())
    hidden = [secret[-32:] for secret in [*said, *kept.values()]]
    assert [secret for secret in hidden if secret in told] == []
    assert [secret for secret in kept.values() if secret in answers] == []
