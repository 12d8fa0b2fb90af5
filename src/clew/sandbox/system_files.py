"""The files of the system that commands may read: programs, and what those need of /etc."""

from __future__ import annotations

from typing import Final

#: Folders of programs, also in distributions that keep them elsewhere.
SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
)
#: Nothing with a secret: not /etc/ssl/private, which root could read.
CONFIGURATION: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
)
#: Names of people and hosts: replaced by others where that is possible.
NAMES: Final = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf")
