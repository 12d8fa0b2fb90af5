"""Dovecot as a private server: with settings of its own, on loopback, any user, one password."""

from __future__ import annotations

import atexit
import functools
import grp
import imaplib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Mapping

PASSWORD = "the-mailbox-secret"

_SETTINGS = """
base_dir = {home}/run
state_dir = {home}/state
log_path = {home}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {login}
first_valid_uid = 1
mail_fsync = never
mail_location = maildir:{home}/mail/%u
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={home}/mail/%u
}}
namespace inbox {{
  inbox = yes
  mailbox "Gesendet" {{
    auto = create
    special_use = \\Sent
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
"""


def find_program() -> str | None:
    """Return the path of dovecot, if it is installed."""
    return shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin")


@functools.cache
def start_dovecot() -> Dovecot:
    """Return the server of this process, which ends with it."""
    program = find_program()
    assert program, "install dovecot: apt-get install --no-install-recommends dovecot-imapd"
    return Dovecot(program)


class Dovecot:
    """One server; each user has a mailbox of their own."""

    def __init__(self, program: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        # Short and open to its own user: the folder of a test is neither.
        self._home = Path(tempfile.mkdtemp(prefix="dovecot-"))
        self._home.chmod(0o755)
        self._write_settings()
        self._process = subprocess.Popen([program, "-F", "-c", f"{self._home}/dovecot.conf"])
        atexit.register(self._stop)
        block_until(self._is_open)

    def _write_settings(self) -> None:
        mail = self._home / "mail"
        mail.mkdir()
        told: Mapping[str, object] = {"home": self._home, "port": self.port, "password": PASSWORD}
        if os.getuid() == 0:
            own = pwd.getpwnam("dovecot")
            os.chown(mail, own.pw_uid, own.pw_gid)
            who = {"user": "dovecot", "group": "dovecot", "login": "dovenull"}
        else:
            own = pwd.getpwuid(os.getuid())
            group = grp.getgrgid(own.pw_gid).gr_name
            who = {"user": own.pw_name, "group": group, "login": own.pw_name}
        text = _SETTINGS.format(**told, **who, uid=own.pw_uid, gid=own.pw_gid)
        (self._home / "dovecot.conf").write_text(text)

    def _is_open(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"imap://127.0.0.1:{self.port}"

    def connect(self, user: str) -> imaplib.IMAP4:
        """Return a connection to a user's mailbox."""
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=20)
        client.login(user, PASSWORD)
        return client

    def append(self, user: str, content: bytes, *, folder: str = "INBOX") -> None:
        """Put a mail into a user's folder."""
        client = self.connect(user)
        assert client.append(folder, "", "", content)[0] == "OK"
        client.logout()
