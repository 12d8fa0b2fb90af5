"""The settings of the dashboard."""

from __future__ import annotations

from clew.config.builtin_types import FLAG, ORIGINS
from clew.config.fields import setting
from clew.record import Record


class DashboardSettings(Record):
    """The dashboard: the agent in a browser, at the address of the API."""

    enabled: bool = setting(FLAG, True, "Whether `clew serve` has the dashboard.")
    origins: tuple[str, ...] = setting(
        ORIGINS,
        (),
        "The addresses beyond this machine at which the dashboard is opened, such as "
        "`https://clew.example`. With `https://`, browsers send the login over TLS only; an "
        "address with `http://` allows to sign in without it, which others in the network can "
        "listen to.",
    )
    push_services: tuple[str, ...] = setting(
        ORIGINS,
        (),
        "Push services that browsers get notices from, beside those of Chrome, Edge, Firefox and "
        "Safari.",
    )
