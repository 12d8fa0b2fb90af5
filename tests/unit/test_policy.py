"""The policy decides by facts, in one order, and asks about what it cannot know."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.call_policy import (
    Decision,
    JudgedCall,
    JudgedTurn,
    UnknownFacts,
    decide,
    restricts_path,
)
from clew.core.command_shape import ParsedCommand
from clew.core.effect import Effect
from clew.core.grant import Grant, GrantPattern, make_pattern
from clew.core.ids import GrantId
from clew.core.policy_rule import CallNarrowing, PolicyRule, Verdict
from clew.core.scope import Scope
from clew.core.tool_facts import PathFact, ToolFacts
from clew.sandbox.shell_parser import parse_command

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 29, tzinfo=UTC)
PERSON = JudgedTurn(scope=Scope("person:telegram:42"), people=("telegram:42",))
GROUP = JudgedTurn(scope=Scope("chat:telegram:-7"), people=("telegram:42", "telegram:43"))
TAINTED = JudgedTurn(scope=Scope("local"), tainted=True)
INSIDE = PathFact(path="/work/a/notes.md", inside=True, writes=True)
OUTSIDE = PathFact(path="/srv/data/x.csv", inside=False, writes=False)
UNKNOWN = UnknownFacts(why="it raised KeyError")


def shell(command: str, *, sandbox: str | None = None, **facts: Any) -> JudgedCall:
    return JudgedCall(
        tool="shell",
        effect=Effect.IDEMPOTENT,
        facts=ToolFacts(command=command, sandbox=sandbox, **facts),
        shape=parse_command(command),
    )


def call(tool: str, facts: ToolFacts | UnknownFacts | None, **more: Any) -> JudgedCall:
    made = JudgedCall(tool=tool, effect=Effect.ONCE, facts=facts)
    return replace(made, **more)


def grant(pattern: GrantPattern) -> Grant:
    return Grant(
        id=GrantId("grt_1"),
        scope=PERSON.scope,
        conversation_id=None,
        pattern=pattern,
        by="telegram:42",
        from_approval=None,
        created_at=NOW,
        expires_at=None,
    )


def granted(one: JudgedCall) -> Grant:
    assert not isinstance(one.facts, UnknownFacts)
    pattern = make_pattern(one.tool, one.facts, one.shape)
    assert pattern is not None
    return grant(pattern)


def rule(then: str, **fields: Any) -> PolicyRule:
    return PolicyRule(then=Verdict(then), **fields)


def judge(
    one: JudgedCall,
    *rules: PolicyRule,
    grants: Sequence[Grant] = (),
    turn: JudgedTurn = PERSON,
) -> Verdict:
    return decide(one, rules, grants, turn).verdict


def test_deny_beats_ask_beats_grant_beats_allow_in_every_order_of_loading() -> None:
    status = shell("git status")
    parts = ["deny", "ask", "grant", "allow"]
    expected = {"deny": Verdict.DENY, "ask": Verdict.ASK, "grant": Verdict.ALLOW}
    orders = list(itertools.permutations(parts))
    assert len(orders) == 24
    for order in orders:
        left = list(parts)
        while left:
            loaded = [one for one in order if one in left]
            rules = [rule(one, tools=("shell",)) for one in loaded if one != "grant"]
            grants = [granted(status)] if "grant" in loaded else []
            decision = decide(status, rules, grants, PERSON)
            assert decision.verdict is expected.get(left[0], Verdict.ALLOW), loaded
            assert (decision.grant is not None) is (left[0] == "grant")
            left.pop(0)


def test_a_rule_that_asks_beside_one_that_allows_everything_asks() -> None:
    rules = (rule("allow"), rule("ask", tools=("shell",), commands=("git push *",)))
    assert judge(shell("git push origin"), *rules) is Verdict.ASK
    assert judge(shell("git status && git push"), *rules) is Verdict.ASK
    assert judge(shell("git status"), *rules) is Verdict.ALLOW
    assert judge(shell("git $(echo push)"), *rules) is Verdict.ASK


_DEFAULTS: list[tuple[JudgedCall, Verdict, str]] = [
    (call("own", None), Verdict.ALLOW, "does not ask"),
    (call("own", None, asks=True), Verdict.ASK, "the tool asks"),
    (call("own", None, plugin_asks=True), Verdict.ASK, "a plugin asks"),
    (call("look", ToolFacts(), effect=Effect.PURE), Verdict.ALLOW, "changes nothing"),
    (call("look", ToolFacts(paths=(OUTSIDE,)), effect=Effect.PURE), Verdict.ASK, "/srv/data"),
    (call("write", ToolFacts(paths=(INSIDE,))), Verdict.ALLOW, "in the workspace"),
    (call("write", ToolFacts(paths=(INSIDE, OUTSIDE))), Verdict.ASK, "/srv/data"),
    (call("send", ToolFacts(paths=(INSIDE,), outward=True)), Verdict.ASK, "outside"),
    (call("post", ToolFacts(hosts=("example.org",))), Verdict.ASK, "outside"),
    (call("buy", ToolFacts(cost_micros=1), effect=Effect.PURE), Verdict.ASK, "money"),
    (call("do", ToolFacts()), Verdict.ASK, "changes something"),
    (call("plan", ToolFacts(internal=True)), Verdict.ALLOW, "what Clew keeps"),
    (call("plan", ToolFacts(internal=True, outward=True)), Verdict.ASK, "outside"),
    (call("run", ToolFacts(sandbox="work")), Verdict.ALLOW, "sandbox"),
    (shell("rm -rf x; $(x)", sandbox="work"), Verdict.ALLOW, "sandbox"),
    (shell("ls", sandbox="work", network=True), Verdict.ASK, "network"),
    (shell("ls", sandbox="host"), Verdict.ASK, "outside of the sandbox"),
    (shell("ls"), Verdict.ASK, "outside of the sandbox"),
    (call("any", UNKNOWN, effect=Effect.PURE), Verdict.ASK, "it raised KeyError"),
]


@pytest.mark.parametrize(("one", "verdict", "why"), _DEFAULTS)
def test_without_rules_the_effect_and_the_sandbox_decide(
    one: JudgedCall, verdict: Verdict, why: str
) -> None:
    decision = decide(one, (), (), PERSON)
    assert decision.verdict is verdict
    assert why in decision.why


def test_unknown_facts_ask_whatever_was_allowed_and_are_denied_by_a_rule() -> None:
    unknown = call("shell", UNKNOWN)
    everything = grant(GrantPattern(tool="shell"))
    assert judge(unknown, rule("allow"), grants=[everything]) is Verdict.ASK
    assert judge(unknown, rule("deny", tools=("shell",))) is Verdict.DENY
    assert decide(unknown, (), (), PERSON).offer is None


def test_an_outward_call_of_a_tainted_turn_asks_whatever_was_granted() -> None:
    outward = {
        "say_to": call("say_to", ToolFacts(outward=True)),
        "web_fetch": call("web_fetch", ToolFacts(hosts=("a.org",), outward=True)),
        "shell": shell("git push origin", sandbox="net", network=True, outward=True),
    }
    for tool, one in outward.items():
        grants = [granted(one)]
        assert judge(one, grants=grants) is Verdict.ALLOW, tool
        assert judge(one, rule("allow"), grants=grants, turn=TAINTED) is Verdict.ASK, tool
        assert decide(one, (), grants, TAINTED).offer is None
    assert judge(call("look", ToolFacts(), effect=Effect.PURE), turn=TAINTED) is Verdict.ALLOW


def test_a_grant_covers_the_same_kind_of_call_and_no_other() -> None:
    status = granted(shell("git status -s", sandbox="host"))
    assert status.pattern.says == "shell: `git status *` (outside of the sandbox)"
    for command, verdict in {
        "git status": Verdict.ALLOW,
        "timeout 5 git status --short": Verdict.ALLOW,
        "git status && git status -b": Verdict.ALLOW,
        "git status && git push": Verdict.ASK,
        "git status > /etc/passwd": Verdict.ASK,
        "git $(echo status)": Verdict.ASK,
        "git stash": Verdict.ASK,
    }.items():
        assert judge(shell(command, sandbox="host"), grants=[status]) is verdict, command
    assert judge(shell("git status", sandbox="net", network=True), grants=[status]) is Verdict.ASK
    read = granted(call("read_file", ToolFacts(paths=(OUTSIDE,))))
    again = PathFact(path="/srv/data/y.csv", inside=False)
    deeper = PathFact(path="/srv/data/z/y.csv", inside=False)
    for path, verdict in {
        again: Verdict.ALLOW,
        deeper: Verdict.ASK,
        PathFact(path="/srv/data/y.csv", inside=False, writes=True): Verdict.ASK,
    }.items():
        asked = call("read_file", ToolFacts(paths=(path,)))
        assert judge(asked, grants=[read]) is verdict, path
    fetch = granted(call("web_fetch", ToolFacts(hosts=("a.org",))))
    for facts, verdict in {
        ToolFacts(hosts=("a.org",)): Verdict.ALLOW,
        ToolFacts(hosts=("a.org", "b.org")): Verdict.ASK,
        ToolFacts(hosts=("a.org",), outward=True): Verdict.ASK,
    }.items():
        assert judge(call("web_fetch", facts), grants=[fetch]) is verdict, facts
    pay = granted(call("pay", None, asks=True))
    assert judge(call("pay", None, asks=True), grants=[pay]) is Verdict.ALLOW
    assert judge(call("send", None, asks=True), grants=[pay]) is Verdict.ASK


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("git status -s", "`git status *`"),
        ("ls -la | wc -l", "`ls *`, `wc *`"),
        ("npm run build", "`npm run build`"),
        ("python3 -c 'print(1)'", "`python3 -c 'print(1)'`"),
        ("find . | xargs grep x", None),  # find may delete: only as it stands
        ("ls | xargs grep x", "`ls *`, `grep *`"),
        ("ls | xargs rm", None),
        ("find . -name '*.py'", None),
        ("rm $x", None),
        ("ls > /tmp/x", None),
    ],
)
def test_what_is_offered_for_longer_is_as_narrow_as_the_command(
    command: str, offered: str | None
) -> None:
    decision = decide(shell(command, sandbox="net", network=True), (), (), PERSON)
    assert decision.verdict is Verdict.ASK
    if command.startswith("find . |"):
        offered = "`find .`, `grep *`"
    says = None if decision.offer is None else decision.offer.says
    assert says == (None if offered is None else f"shell: {offered} (with the network)")


def test_whoever_is_asked_is_told_that_nothing_keeps_the_command_apart() -> None:
    asks = rule("ask", tools=("shell",))
    for place in ("host", None):
        told = decide(shell("git status", sandbox=place), [asks], (), PERSON).why
        assert told == "rule 1 asks; it runs outside of the sandbox"
    assert decide(shell("git status", sandbox="work"), [asks], (), PERSON).why == "rule 1 asks"


def test_nothing_is_offered_that_would_not_hold_after_the_call_itself() -> None:
    reads = shell("git status", sandbox="host", network=True, outward=True, untrusted_result=True)
    assert decide(reads, (), (), PERSON) == Decision(
        verdict=Verdict.ASK, why="by default: it runs outside of the sandbox"
    )
    sends = call("send", ToolFacts(outward=True), untrusted=True)
    assert decide(sends, (), (), PERSON).offer is None
    assert decide(replace(sends, untrusted=False), (), (), PERSON).offer is not None


def test_a_pattern_is_read_again_as_it_was_stored() -> None:
    pattern = granted(shell("git status", sandbox="host")).pattern
    assert GrantPattern.from_json(pattern.to_json()) == pattern
    with pytest.raises(ValueError, match="not the pattern of a grant"):
        GrantPattern.from_json('{"tool": "x", "more": 1}')


def test_rules_are_about_people_tools_hosts_and_paths() -> None:
    nobody = rule("deny", tools=("shell", "write_*"), who=("chat:*",))
    assert judge(shell("ls", sandbox="work"), nobody, turn=GROUP) is Verdict.DENY
    assert judge(shell("ls", sandbox="work"), nobody) is Verdict.ALLOW
    one = rule("allow", tools=("pay",), who=("telegram:42",))
    pay = call("pay", None, asks=True)
    assert judge(pay, one) is Verdict.ALLOW
    assert judge(pay, one, turn=GROUP) is Verdict.ASK  # somebody else takes part
    internal = rule("deny", hosts=("*.internal",))
    fetch = call("web_fetch", ToolFacts(hosts=("a.org", "db.internal")), effect=Effect.PURE)
    assert judge(fetch, internal) is Verdict.DENY
    assert judge(call("own", None), internal) is Verdict.ALLOW
    data = rule("allow", tools=("read_file",), paths=("/srv/data/*",))
    assert judge(call("read_file", ToolFacts(paths=(OUTSIDE,))), data) is Verdict.ALLOW
    assert judge(call("read_file", ToolFacts(paths=(OUTSIDE, INSIDE))), data) is Verdict.ASK
    keys = rule("deny", paths=("*.pem",))
    key = PathFact(path="/work/a/x.pem", inside=True)
    assert judge(call("read_file", ToolFacts(paths=(INSIDE, key))), keys) is Verdict.DENY
    named = rule("deny", tools=("own",), hosts=("*.internal",))
    assert judge(call("own", None), named) is Verdict.ASK  # its hosts cannot be seen


def test_where_nobody_can_be_asked_a_question_is_a_refusal() -> None:
    alone = JudgedTurn(scope=Scope("local"), no_answer="nobody can be asked here")
    assert decide(call("pay", None, asks=True), (), (), alone) == Decision(
        verdict=Verdict.DENY, why="nobody can be asked here"
    )
    assert judge(call("own", None), turn=alone) is Verdict.ALLOW


def test_a_command_that_was_not_parsed_is_allowed_by_no_pattern() -> None:
    unread = call("shell", ToolFacts(command="git status"))
    assert judge(unread, rule("allow", commands=("git *",))) is Verdict.ASK
    problem = JudgedCall(
        tool="shell",
        effect=Effect.ONCE,
        facts=ToolFacts(command="x"),
        shape=ParsedCommand(problem="it cannot be parsed"),
    )
    assert judge(problem, rule("allow", commands=("*",))) is Verdict.ASK
    assert judge(problem, rule("deny", commands=("rm *",))) is Verdict.ASK


def test_what_was_allowed_for_a_folder_covers_neither_its_neighbours_nor_all_below_it() -> None:
    def look(path: str, extent: Any = "tree") -> JudgedCall:
        facts = ToolFacts(paths=(PathFact(path=path, inside=False, extent=extent),))
        return call("search", facts, effect=Effect.PURE)

    listed, searched = look("/srv/a", "folder"), look("/srv/a")
    assert granted(listed).pattern.says == "search: reading in /srv/a"
    assert granted(searched).pattern.says == "search: reading everything below /srv/a"
    for covered in (listed, look("/srv/a/x", "file")):
        assert judge(covered, grants=[granted(listed)]) is Verdict.ALLOW
    for other in (searched, look("/srv/a/b", "folder"), look("/srv/b", "folder"), look("/srv")):
        assert judge(other, grants=[granted(listed)]) is Verdict.ASK
    for covered in (searched, listed, look("/srv/a/b"), look("/srv/a/b/c", "file")):
        assert judge(covered, grants=[granted(searched)]) is Verdict.ALLOW
    for other in (look("/srv/b"), look("/srv"), look("/"), look("/srv/ab", "file")):
        assert judge(other, grants=[granted(searched)]) is Verdict.ASK


@pytest.mark.parametrize(
    ("pattern", "verdict"),
    [
        ("*.key", Verdict.ASK),
        ("/srv/*/x.key", Verdict.ASK),
        ("/srv/a/b/*", Verdict.ASK),
        ("/srv/a", Verdict.DENY),
        ("/srv", Verdict.DENY),
        ("/srv/b/*", Verdict.ALLOW),
    ],
)
def test_a_search_around_a_path_that_is_denied_asks(pattern: str, verdict: Verdict) -> None:
    facts = ToolFacts(paths=(PathFact(path="/srv/a", inside=True, extent="tree"),))
    search = call("search_files", facts, effect=Effect.PURE)
    assert judge(search, rule("deny", paths=(pattern,))) is verdict
    allow = rule("allow", paths=("/srv/a/*",))
    assert judge(search, rule("ask"), allow) is Verdict.ASK, "a part of it is not all of it"
    # It need not ask if it leaves out what it may not see.
    fact = replace(facts.paths[0], leaves_out=True)
    careful = call("search_files", ToolFacts(paths=(fact,)), effect=Effect.PURE)
    expected = Verdict.DENY if verdict is Verdict.DENY else Verdict.ALLOW
    assert judge(careful, rule("deny", paths=(pattern,))) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "restricted"),
    [
        ("*.env", "/work/a/prod.env", True),
        (".env", "/work/.env", True),
        (".env", "/work/x.env", False),
        ("secrets/*", "/work/secrets/a/b", True),
        ("secrets", "/work/secrets/a/b", True),
        ("secrets", "/work/secretsx/a", False),
        ("/work/secrets", "/work/secrets/a", True),
        ("/work/secrets", "/work/a/work/secrets/a", False),
    ],
)
def test_a_rule_that_denies_a_folder_is_about_everything_in_it(
    pattern: str, path: str, restricted: bool
) -> None:
    for then in ("deny", "ask"):
        rules = [rule(then, paths=(pattern,))]
        assert restricts_path(rules, "read_file", path, PERSON) is restricted
    other = [
        rule("allow", paths=(pattern,)),
        rule("deny", tools=("shell",), paths=(pattern,)),
        rule("deny", who=("chat:*",), paths=(pattern,)),
        rule("deny", hosts=("x",), paths=(pattern,)),
    ]
    assert not restricts_path(other, "read_file", path, PERSON)


def test_a_rule_that_allows_relative_to_the_workspace_is_about_files_in_it() -> None:
    allow = rule("allow", tools=("pay",), paths=("reports/*",))
    for inside, verdict in ((True, Verdict.ALLOW), (False, Verdict.ASK)):
        fact = PathFact(path="/srv/reports/a", inside=inside)
        assert judge(call("pay", ToolFacts(paths=(fact,)), asks=True), allow) is verdict


@pytest.mark.parametrize(
    ("command", "written", "asks"),
    [
        ("git status", (), False),
        ("git status", ("/work/notes.md",), False),
        ("git status", ("/work/.git/config",), True),
        ("git status", ("/work/sub/.GIT/hooks/x",), True),
        ("git status", ("/work/HEAD",), True),  # of a bare repository
        ("git status", ("",), True),
        ("ls -la && git diff", ("/work/.gitattributes",), True),
        ("timeout 5 git status", ("",), True),
        ("ls -la | wc -l", ("",), False),
        ("./ls", ("/work/ls",), True),
        ("make all", ("/work/notes.md",), True),
        ("make all", (), False),
    ],
)
def test_on_the_host_a_pattern_asks_once_files_that_steer_the_command_were_written_unseen(
    command: str, written: tuple[str, ...], asks: bool
) -> None:
    allow = rule("allow", commands=("git *", "ls *", "wc *", "make *", "./ls"))
    turn = replace(PERSON, unseen=written)
    verdict = Verdict.ASK if asks else Verdict.ALLOW
    asked = shell(command, sandbox="host")
    assert judge(asked, allow, turn=turn) is verdict
    assert judge(asked, grants=[granted(asked)], turn=turn) is verdict
    # What is kept apart can do no more than the sandbox lets it do, and who allows all means it.
    assert judge(shell(command, sandbox="net", network=True), allow, turn=turn) is Verdict.ALLOW
    assert judge(asked, rule("allow", tools=("shell",)), turn=turn) is Verdict.ALLOW
    if asks:
        why = decide(asked, [allow], (), turn).why
        assert "follows files of its folder" in why


def test_a_narrowing_asks_about_what_it_does_not_list_whatever_was_granted_and_allows_nothing() -> (
    None
):
    listed = CallNarrowing(says="the skill git", calls=(("read_file", None), ("shell", "git *")))
    turn = replace(PERSON, narrowings=(listed,))
    blanket = (PolicyRule(then=Verdict.ALLOW),)
    for command, verdict in (("git log", Verdict.ALLOW), ("git log; ls", Verdict.ASK),
                             ("git log $(ls)", Verdict.ASK), ("gitk", Verdict.ASK)):  # fmt: skip
        decision = decide(shell(command, sandbox="work"), blanket, (), turn)
        assert decision.verdict is verdict, command
    other = call("write_file", ToolFacts(paths=(INSIDE,)))
    pattern = make_pattern("write_file", ToolFacts(paths=(INSIDE,)), None)
    assert pattern is not None
    allowed = grant(pattern)
    asked = decide(other, blanket, (allowed,), turn)
    assert (asked.verdict, asked.why) == (Verdict.ASK, "the skill git does not list it")
    open_call = shell("git push", sandbox="host")
    assert decide(open_call, (), (), turn).verdict is Verdict.ASK, "listing allows nothing"
    denied = (PolicyRule(then=Verdict.DENY),)
    assert decide(other, denied, (), turn).verdict is Verdict.DENY
    both = replace(turn, narrowings=(listed, CallNarrowing(says="the skill ls", calls=())))
    assert decide(shell("git log", sandbox="work"), blanket, (), both).verdict is Verdict.ASK
