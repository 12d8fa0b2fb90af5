"""The safeguards of jobs that run by themselves."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SCHEDULE = "src/clew/features/schedule"
_JOBS = "tests/features/test_schedule.py::test_"
_FAULTS = "tests/features/test_schedule_faults.py::test_"
_UPKEEP = "tests/features/test_schedule_upkeep.py::test_"
_UNIT = "tests/unit/test_schedules.py::test_"

SCHEDULE = (
    Mutation(
        name="job-of-the-excluded",
        mechanism="a job whose creator has no access does not run",
        file=f"{_SCHEDULE}/firing.py",
        old="    if access.is_excluded(t, job, rules.policies):",
        new="    if False:",
        test=f"{_JOBS}a_job_is_paused_when_its_creator_is_shut_out_and_ends_with_its_conversation"
        "[sqlite]",
    ),
    Mutation(
        name="job-of-the-settings",
        mechanism="the settings decide who may talk, and so whose jobs run",
        file=f"{_SCHEDULE}/access.py",
        old="    return decision is AccessDecision.ALLOW",
        new="    return True",
        test=f"{_UPKEEP}the_jobs_of_a_person_who_is_taken_out_of_the_settings_are_paused[sqlite]",
    ),
    Mutation(
        name="jobs-of-jobs",
        mechanism="a job makes no job that comes again",
        file=f"{_SCHEDULE}/front.py",
        old="        if request.at is None:",
        new="        if False:",
        test="tests/features/test_schedule_fronts.py::test_a_job_makes_no_job_that_comes_again"
        "[sqlite]",
    ),
    Mutation(
        name="jobs-without-end",
        mechanism="jobs that make jobs once more each come to an end",
        file=f"{_SCHEDULE}/front.py",
        old="        if context.hops >= MAX_HOPS:",
        new="        if False:",
        test=f"{_FAULTS}jobs_that_create_jobs_come_to_an_end[sqlite]",
    ),
    Mutation(
        name="job-overlap",
        mechanism="a slot starts no run while the one before goes on",
        file=f"{_SCHEDULE}/firing.py",
        old="    running = find_running_fire(t, job.id)\n    if running is not None:",
        new="    running = find_running_fire(t, job.id)\n    if running is not None and False:",
        test=f"{_JOBS}a_run_that_goes_on_keeps_the_next_slots_from_starting_another[sqlite]",
    ),
    Mutation(
        name="job-failures",
        mechanism="failures in a row are told once a day",
        file=f"{_SCHEDULE}/runs.py",
        old="    return days[0] < days[1]",
        new="    return True",
        test=f"{_JOBS}failures_are_told_once_and_then_once_a_day_and_so_is_their_end[sqlite]",
    ),
    Mutation(
        name="job-reminder",
        mechanism="the input of a job is no message of a person",
        file="src/clew/store/transactions/completions.py",
        old="    kind: InboxKind = InboxKind.COMPLETION,",
        new="    kind: InboxKind = InboxKind.MESSAGE,",
        test=f"{_FAULTS}a_reminder_is_never_taken_for_a_message_of_a_person[sqlite]",
    ),
    Mutation(
        name="job-no-chat",
        mechanism="a job reports to no chat in which nobody has written",
        file=f"{_SCHEDULE}/operations.py",
        old="    if route is not None and conversation is None:",
        new="    if False:",
        test=f"{_FAULTS}a_reminder_goes_to_no_chat_that_is_not_there[sqlite]",
    ),
    Mutation(
        name="job-moved-chat",
        mechanism="the route of a job changes with the id of its chat",
        file=f"{_SCHEDULE}/__init__.py",
        old='        of_route={"schedule_job": "route"},\n',
        new="",
        test=f"{_JOBS}a_chat_that_gets_another_id_keeps_its_jobs_its_conversations_and_its_files"
        "[sqlite]",
    ),
    Mutation(
        name="job-not-yet",
        mechanism="no slot is processed before its time",
        file=f"{_SCHEDULE}/planning.py",
        old="    while slot is not None and slot <= now and len(due) < limit:",
        new="    while slot is not None and len(due) < 2:",
        test=f"{_UNIT}a_slot_on_time_runs_whatever_the_rule_and_none_runs_early",
    ),
    Mutation(
        name="job-late",
        mechanism="a slot that was missed is not made up for unless the rule says so",
        file=f"{_SCHEDULE}/planning.py",
        old="(catch_up is CatchUp.NONE and late[-1])",
        new="False",
        test=f"{_UNIT}slots_that_were_missed_are_made_up_for_as_the_rule_says",
    ),
    Mutation(
        name="job-gap",
        mechanism="a local time that the clocks skip is the first instant after the gap",
        file=f"{_SCHEDULE}/zones.py",
        old="    if to_local(instant, zone) == local:\n        return instant\n",
        new="    return instant\n",
        test=f"{_UNIT}half_past_two_comes_once_on_each_day_of_four_years",
    ),
    Mutation(
        name="job-counted-runs",
        mechanism="runs that count are not removed with old rows",
        file=f"{_SCHEDULE}/pruning.py",
        old="j.max_runs IS NULL OR f.state",
        new="1 = 1 OR f.state",
        test=f"{_UPKEEP}old_rows_are_removed_and_no_job_runs_more_often_for_it[sqlite]",
    ),
    Mutation(
        name="job-not-delivered",
        mechanism="a report that could not be delivered is not shown as delivered",
        file=f"{_SCHEDULE}/reports.py",
        old='    if "failed" in states:',
        new="    if False:",
        test=f"{_UPKEEP}the_log_tells_whether_a_report_has_arrived[sqlite]",
    ),
    Mutation(
        name="job-quiet-answer",
        mechanism="an answer that says that there is nothing is not delivered",
        file="src/clew/core/run_report.py",
        old="    return quiet_if is None or text.strip() != quiet_if.strip()",
        new="    return True",
        test=f"{_FAULTS}quiet_heartbeats_say_nothing_and_one_with_news_says_it_once[sqlite]",
    ),
)
