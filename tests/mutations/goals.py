"""The safeguards of goals, towards which the agent goes on by itself."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_GOALS = "src/clew/features/goals"
_TESTS = "tests/features/test_goals.py::test_"
_LIMITS = f"{_TESTS}a_goal_ends_with_its_rounds_its_tokens_or_those_of_the_day_and_says_so_once"
_JUDGED = f"{_TESTS}a_judge_ends_the_goal_says_what_is_missing_or_fails[sqlite]"

GOALS = (
    Mutation(
        name="goal-rounds",
        mechanism="a goal has only so many rounds",
        file=f"{_GOALS}/planning.py",
        old="        GoalReason.ROUNDS: goal.rounds >= goal.max_rounds,",
        new="        GoalReason.ROUNDS: goal.rounds >= goal.max_rounds + 1,",
        test=f"{_LIMITS}[sqlite]",
    ),
    Mutation(
        name="goal-tokens",
        mechanism="a goal whose tokens are spent is paused",
        file=f"{_GOALS}/planning.py",
        old="        GoalReason.BUDGET: goal.tokens >= goal.budget,",
        new="        GoalReason.BUDGET: False,",
        test=f"{_LIMITS}[sqlite]",
    ),
    Mutation(
        name="goal-day",
        mechanism="rounds count towards the tokens of a day",
        file=f"{_GOALS}/planning.py",
        old="        GoalReason.DAY: facts.is_day_spent,",
        new="        GoalReason.DAY: False,",
        test=f"{_LIMITS}[sqlite]",
    ),
    Mutation(
        name="goal-judge",
        mechanism="the judge is asked after each round, before the next",
        file=f"{_GOALS}/planning.py",
        old="        if last.verdict is None:",
        new="        if False:",
        test=_JUDGED,
    ),
    Mutation(
        name="goal-judge-costs",
        mechanism="what the judge costs is recorded, whatever it says",
        file=f"{_GOALS}/judging.py",
        old='    record_answer(t, goal.conversation, answer, id=usage, purpose="goal")',
        new="    pass",
        test=_JUDGED,
    ),
    Mutation(
        name="goal-idle",
        mechanism="no round begins while a turn of the conversation goes on",
        file=f"{_GOALS}/goals.py",
        old="goals.conversation AND n.state <> 'done'",
        new="goals.conversation AND 1 = 0",
        test=f"{_TESTS}a_message_of_a_person_goes_first_and_the_goal_goes_on_after_it[sqlite]",
    ),
    Mutation(
        name="goal-stopped",
        mechanism="a person who stops the answer pauses the goal",
        file=f"{_GOALS}/planning.py",
        old="    if facts.is_stopped or fresh is RoundState.STOPPED:",
        new="    if False:",
        test=f"{_TESTS}who_stops_the_answer_or_leaves_the_conversation_pauses_the_goal[sqlite]",
    ),
    Mutation(
        name="goal-moved",
        mechanism="a goal whose chat has moved to another conversation is paused",
        file=f"{_GOALS}/planning.py",
        old="    if facts.is_moved:",
        new="    if False:",
        test=f"{_TESTS}who_stops_the_answer_or_leaves_the_conversation_pauses_the_goal[sqlite]",
    ),
)
