"""Mail: threads are conversations, only proven people are answered, and no robot is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.core.channel_events import MessageReceived, OutboundMessage
from clew.errors import OutcomeUnknown, SettingsError
from clew.gateway.channel import ChannelConfig, MemoryChannelStorage
from clew.gateway.channels.mail.channel import open_channel
from clew.gateway.channels.mail.position import MailPosition
from clew.record import replace
from tests.channels.desk import Plain, echo, serving, table, until
from tests.mail.dovecot import PASSWORD
from tests.mail.hub import PERSON, MailHub

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from pathlib import Path

    from clew.core.channel_events import ChannelEvent
    from clew.gateway.channel import Channel
    from tests.line.world import World


class Desk(Plain):
    def __init__(self, world: World, hub: MailHub) -> None:
        self.world, self.hub = world, hub

    def texts(self, chat: int = 42) -> list[str]:
        return [one.text.strip() for one in self.hub.smtp.sent]

    def waiting(self) -> int:
        return 0


@asynccontextmanager
async def desk(url: str, home: Path, hub: MailHub, **more: object) -> AsyncGenerator[Desk]:
    own = {**hub.settings(), "token": PASSWORD, "allow": PERSON, **more}
    async with serving(url, home, table("mail", own), script=echo) as world:
        await until(lambda: world.engine.channels["mail"].heard_at is not None)
        yield Desk(world, hub)


async def next_events(events: AsyncIterator[Sequence[ChannelEvent]]) -> list[MessageReceived]:
    """Return the next batch that is not empty."""
    async for batch in events:
        if batch:
            return [one for one in batch if isinstance(one, MessageReceived)]
    raise AssertionError("no more mails")


async def read_all(channel: Channel, last: str) -> list[MessageReceived]:
    """Return what is received up to the mail with a text."""
    heard: list[MessageReceived] = []
    events = channel.receive()
    while not heard or heard[-1].text != last:
        heard += await next_events(events)
    return heard


async def test_a_thread_is_a_conversation_and_its_answers_name_the_mails_before(
    store_url: str, tmp_path: Path
) -> None:
    with MailHub() as hub:
        async with desk(store_url, tmp_path, hub) as here:
            first = hub.write("What is *two*?\n-- \nAnn", Subject="Sums")
            hub.post(first)
            (text,) = await here.answered(1)
            assert text.splitlines()[0] == "You said: What is two?"
            assert "[subject: Sums]" in text
            assert "[signature cut]" in text
            answer = hub.smtp.sent[0].mail
            assert answer["To"] == PERSON
            assert (answer["Subject"], answer["In-Reply-To"]) == ("Re: Sums", first["Message-ID"])
            assert answer["Auto-Submitted"] == "auto-replied"
            assert "<em>two</em>" in hub.smtp.sent[0].html
            # A client that names the last mail only, and quotes it.
            quoted = "\n".join(f"> {line}" for line in text.splitlines())
            second = hub.write(
                f"And three?\n\nOn Monday, Clew wrote:\n{quoted}",
                Subject="Re: Sums",
                In_Reply_To=answer["Message-ID"],
            )
            hub.post(second)
            await here.answered(2)
            assert here.texts()[1] == "You said: And three?\n[quoted text cut]"
            assert hub.smtp.sent[1].mail["References"].split()[-1] == second["Message-ID"]
            hub.post(hub.write("Other things", Subject="Other"))
            await here.answered(3)
            await here.quiet()
            assert "three?" not in str(here.world.model.sent[-1]), "another conversation"
            assert await here.world.check() == []


ROBOTS = [
    {"Auto_Submitted": "auto-replied"},
    {"Precedence": "bulk"},
    {"List_Id": "<list.people.example>"},
    {"X_Auto_Response_Suppress": "All"},
    {"From": "MAILER-DAEMON@people.example"},
    {"Message_ID": f"<clew.{'a' * 24}.{'b' * 32}@people.example>"},
]


async def test_robots_lists_and_people_who_are_not_proven_are_never_heard() -> None:
    with MailHub() as hub:
        async with hub.open_channel() as channel:
            for headers in ROBOTS:
                hub.post(hub.write("robot", **headers))
            hub.post(hub.write("agent", From=hub.address))
            for proof in (
                "dkim=fail header.d=people.example",
                "dkim=pass header.d=evil.example",
                "spf=pass smtp.mailfrom=ann@evil.example",
                "dmarc=fail header.from=people.example; dkim=pass header.d=people.example",
                # As it may come with a mail, below the one of the own server.
                "none\r\nAuthentication-Results: mx.example.org; dkim=pass header.d=people.example",
            ):
                hub.post(hub.write("forged"), proof=proof)
            two = (
                hub.write("two senders")
                .as_bytes()
                .replace(b"From:", b"From: a@evil.example\r\nFrom:", 1)
            )
            hub.post(two)
            hub.post(hub.write("by SPF"), proof="spf=pass smtp.mailfrom=bounce@people.example")
            hub.post(hub.write("by DMARC"), proof="dmarc=pass (p=none) header.from=people.example")
            hub.post(hub.write("end"))
            assert [one.text for one in await read_all(channel, "end")] == [
                "by SPF",
                "by DMARC",
                "end",
            ]


async def test_two_gateways_that_face_each_other_exchange_one_mail(
    store_url: str, tmp_path: Path
) -> None:
    with MailHub(delivers=True) as hub:
        other = hub.name("other")
        both = {
            **table("mail", {**hub.settings(), "token": PASSWORD, "allow": "*"}),
            **table(
                "second", {**hub.settings(other), "token": PASSWORD, "allow": "*", "kind": "mail"}
            ),
        }
        async with serving(store_url, tmp_path, both, script=echo) as world:
            here = Desk(world, hub)
            await until(lambda: all(one.heard_at for one in world.engine.channels.values()))
            domain = "dkim=pass header.d=agents.example"
            hub.post(hub.write("Hello, agent", From=other), proof=domain)
            await here.answered(1)
            # Both have read what came after the answer.
            hub.post(hub.write("to the one"))
            hub.post(hub.write("to the other", To=other), to=other)
            await here.answered(3)
            await here.quiet()
            assert [one.to for one in hub.smtp.sent].count(other) == 1
            assert len(hub.smtp.sent) == 3


async def test_a_robot_that_nothing_betrays_is_not_answered_for_ever() -> None:
    with MailHub() as hub:
        async with hub.open_channel(max_per_hour=2) as channel:
            for number in range(4):
                hub.post(hub.write(f"loop {number}", In_Reply_To="<root@people.example>"))
            hub.post(hub.write("end"))
            heard = await read_all(channel, "end")
            assert [one.text for one in heard] == ["loop 0", "loop 1", "end"]


async def test_an_answer_whose_copy_was_kept_is_not_sent_again() -> None:
    with MailHub() as hub:
        async with hub.open_channel() as channel:
            hub.post(hub.write("Hello"))
            (heard,) = await next_events(channel.receive())
            route, (chunk,) = heard.route, channel.render(OutboundMessage(text="Hi"))
            sent = await channel.send(route, chunk, key="one")
        async with hub.open_channel() as channel:
            again = channel.with_repeat_notice(chunk)
            assert await channel.send(route, again, key="one") == sent
            assert len(hub.smtp.sent) == 1
            # Taken, but nobody knows: there is no copy. It says so, under the same message ID.
            hub.smtp.cuts.append(True)
            with pytest.raises(OutcomeUnknown):
                await channel.send(route, chunk, key="two")
            await channel.send(route, again, key="two")
            _, first, second = hub.smtp.sent
            assert first.mail["Message-ID"] == second.mail["Message-ID"]
            assert second.text.startswith("(may be a repeat)")


async def test_a_folder_that_counts_anew_is_read_again_and_known_mails_count_once() -> None:
    with MailHub() as hub:
        storage = MemoryChannelStorage()
        async with hub.open_channel(storage) as channel:
            hub.post(hub.write("one"))
            events = channel.receive()
            await next_events(events)
            hub.post(hub.write("two"))
            await next_events(events)
        stored = await storage.get("position")
        assert stored is not None
        position = replace(MailPosition.from_json(stored), uid_validity=1)
        assert len(position.recent) == 1, "the second is not confirmed"
        await storage.put("position", position.to_json())
        async with hub.open_channel(storage) as channel:
            assert [one.text for one in await read_all(channel, "two")] == ["two"]


async def test_files_html_and_odd_letters_are_read_and_nothing_is_lost_in_silence() -> None:
    with MailHub() as hub:
        async with hub.open_channel() as channel:
            mail = hub.write("See the file")
            mail.add_attachment(
                b"red roses", maintype="text", subtype="plain", filename="roses.txt"
            )
            hub.post(mail)
            html = hub.write("")
            html.set_content(
                "<p>Hello <b>there</b></p><p style='display:none'>secret</p>"
                "<div class=gmail_quote>earlier words</div>",
                subtype="html",
            )
            hub.post(html)
            odd = hub.write("caf\u00e9").as_bytes().replace(b"utf-8", b"x-unknown")
            hub.post(odd)
            torn = (
                hub.write("torn").as_bytes().replace(b"text/plain", b"multipart/mixed; boundary=x")
            )
            hub.post(torn)
            # Nobody can be answered: it stays unread, and the log names it.
            hub.post(
                b"From: ann\r\nSubject: =?x\r\nContent-Type: text/plain; charset=\r\n\r\nnobody"
            )
            hub.post(b"no header at all")
            hub.post(hub.write("end"))
            file, page, letters, broken, _ = await read_all(channel, "end")
            (told,) = file.files
            assert (told.name, told.size) == ("roses.txt", 9)
            assert await channel.fetch_file(told, most=100) == b"red roses"
            assert page.text == "Hello **there**"
            assert [one.text for one in page.quoted] == ["earlier words"]
            assert letters.text == "café"
            assert "malformed mail" in broken.unsupported
        client = hub.dovecot.connect(hub.address)
        client.select("INBOX", readonly=True)
        unread = client.uid("SEARCH", "UNSEEN")[1][0].split()
        client.logout()
        assert {b"5", b"6"} <= set(unread)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"address": "nobody"}, "address is not the agent's own address"),
        ({"imap": "https://mail.example.org"}, "imap is not the address of the server"),
        ({"authserv_id": ""}, "authserv_id is missing"),
        ({"max_per_hour": 0}, "max_per_hour is not a number"),
        ({"host": "a"}, "has no setting host"),
        ({"password": None}, "token is missing"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named(given: dict[str, object], says: str) -> None:
    from clew.config.secret import Secret  # noqa: PLC0415

    whole: dict[str, object] = {
        "address": "clew@example.org",
        "imap": "imaps://mail.example.org",
        "smtp": "smtps://mail.example.org",
        "authserv_id": "mx.example.org",
        **given,
    }
    token = None if "password" in whole else Secret.from_text("x")
    whole.pop("password", None)
    with pytest.raises(SettingsError, match=says):
        open_channel(ChannelConfig(name="mail", token=token, base_url=None, options=whole))
