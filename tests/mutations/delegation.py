"""The safeguards of tasks that agents give to others."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_DELEGATION = "src/clew/features/delegation"
_ENDS = "tests/features/test_delegation_ends.py::test_"
_FRONTS = "tests/features/test_delegation_fronts.py::test_"
_AGENTS = "tests/features/test_named_agents.py::test_"
_KINDS = "tests/features/test_agent_kinds.py::test_"
_BUDGET = f"{_ENDS}a_used_budget_ends_a_task_with_what_there_is"

DELEGATION = (
    Mutation(
        name="task-end",
        mechanism="a task ends, and its parent is told, in the commit that ends its turn",
        file=f"{_DELEGATION}/ending.py",
        old="        settle_child(t, child, turn)\n    for waited",
        new="        pass\n    for waited",
        test=f"{_ENDS}a_task_in_the_background_is_told_of_once_when_it_ends[sqlite]",
    ),
    Mutation(
        name="task-once",
        mechanism="a call that is made again after a crash finds the task that it has opened",
        file=f"{_DELEGATION}/opening.py",
        old="    if (known := find_child(t, conversation)) is not None:",
        new="    if (known := find_child(t, conversation)) is not None and False:",
        test="tests/features/test_delegation_killed.py::"
        "test_a_killed_gateway_leaves_one_child_with_one_answer[opened]",
    ),
    Mutation(
        name="task-late",
        mechanism="an answer that comes late says so",
        file=f"{_DELEGATION}/ending.py",
        old="    if head.id != child.parent_session:",
        new="    if False:",
        test=f"{_ENDS}an_answer_goes_to_the_conversation_that_asked_marked_late[sqlite]",
    ),
    Mutation(
        name="task-taint-up",
        mechanism="text of strangers that a task has read taints its parent",
        file=f"{_DELEGATION}/ending.py",
        old="    if is_tainted(t, child.conversation_id):",
        new="    if False:",
        test=f"{_FRONTS}text_of_strangers_taints_the_parent_and_what_it_asks_for[sqlite]",
    ),
    Mutation(
        name="task-taint-down",
        mechanism="a task of a tainted conversation is tainted",
        file=f"{_DELEGATION}/opening.py",
        old="        origin=child.parent_conversation,\n"
        "        origin_seq=conversations.get_conversation(t, child.parent_conversation).last_seq,\n",
        new="",
        test=f"{_FRONTS}text_of_strangers_taints_the_parent_and_what_it_asks_for[sqlite]",
    ),
    Mutation(
        name="task-depth",
        mechanism="tasks are nested only so deep",
        file=f"{_DELEGATION}/opening.py",
        old="    if depth > settings.depth:",
        new="    if False:",
        test=f"{_ENDS}what_is_too_deep_or_too_much_is_refused[sqlite]",
    ),
    Mutation(
        name="task-places",
        mechanism="of a tree only so many tasks run at once",
        file=f"{_DELEGATION}/opening.py",
        old="    return len(working) - int(waits) < at_once",
        new="    return True",
        test=f"{_ENDS}what_is_too_deep_or_too_much_is_refused[sqlite]",
    ),
    Mutation(
        name="task-tokens",
        mechanism="a task whose tokens are used is told to answer",
        file=f"{_DELEGATION}/budgets.py",
        old="        if sum_tree_tokens(t, above.conversation_id) >= above.max_tokens:",
        new="        if False:",
        test=f"{_BUDGET}[sqlite-limit0-True]",
    ),
    Mutation(
        name="task-steps",
        mechanism="a task whose steps are used is told to answer",
        file=f"{_DELEGATION}/budgets.py",
        old="steps >= child.max_steps or",
        new="False or",
        test=f"{_BUDGET}[sqlite-limit1-True]",
    ),
    Mutation(
        name="task-grace",
        mechanism="a task that does not answer although its budget is used is stopped",
        file=f"{_DELEGATION}/budgets.py",
        old="        if steps >= child.warned_at + _GRACE:",
        new="        if False:",
        test=f"{_BUDGET}[sqlite-limit0-False]",
    ),
    Mutation(
        name="kind-tools",
        mechanism="a task has no tool that the one which asked for it lacks",
        file="src/clew/core/agent_profile.py",
        old="        tools=_narrow_tools(limit.tools, wanted.tools),",
        new="        tools=wanted.tools,",
        test=f"{_KINDS}no_task_has_more_rights_than_the_one_that_asked_for_it[sqlite]",
    ),
    Mutation(
        name="kind-level",
        mechanism="commands of a task run at no level beyond that of the one which asked for it",
        file="src/clew/core/agent_profile.py",
        old="wanted.level if limit.level is None else narrow_level(limit.level, wanted.level)",
        new="wanted.level",
        test=f"{_KINDS}no_task_has_more_rights_than_the_one_that_asked_for_it[sqlite]",
    ),
    Mutation(
        name="kind-held",
        mechanism="an agent is offered only the tools to which it is held, in each session",
        file="src/clew/agent/allowed_tools.py",
        old="if _get_called(name, tool) in self.names}",
        new="if True}",
        test=f"{_KINDS}a_task_stays_as_it_was_when_the_settings_of_its_kind_change[sqlite]",
    ),
    Mutation(
        name="kind-jobs",
        mechanism="an agent with fewer rights makes no job that runs with all of them",
        file="src/clew/features/schedule/front.py",
        old="    if not _has_fewer_rights(context) or request.kind is JobKind.MESSAGE:",
        new="    if True:",
        test=f"{_KINDS}an_agent_with_fewer_rights_schedules_nothing_that_others_carry_out",
    ),
    Mutation(
        name="route-agent",
        mechanism="a conversation keeps the agent that its route names",
        file="src/clew/store/transactions/settings.py",
        old="    if agent != MAIN_AGENT:",
        new="    if False:",
        test=f"{_AGENTS}what_continues_a_conversation_of_a_named_agent_has_the_same_agent[sqlite]",
    ),
    Mutation(
        name="agent-gone",
        mechanism="an agent without a table does not get the rights of the main one",
        file="src/clew/engine/named_agents.py",
        old="        return WITHOUT_RIGHTS",
        new="        return None",
        test=f"{_AGENTS}an_agent_that_is_gone_from_the_settings_gets_no_tools",
    ),
)
