"""The safeguards of the dashboard."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SIGN_IN = "src/clew/features/dashboard/sign_in.py"
_LOGINS = "tests/features/test_dashboard_login.py::test_"

DASHBOARD = (
    Mutation(
        name="dashboard-origin",
        mechanism="only the page of the dashboard may use its cookie",
        file=_SIGN_IN,
        old="        if not _is_own(connection, address):\n",
        new="        if False:\n",
        test=f"{_LOGINS}another_page_can_neither_log_in_nor_use_the_cookie",
    ),
    Mutation(
        name="dashboard-code",
        mechanism="a code logs one browser in",
        file="src/clew/features/dashboard/logins.py",
        old='    is_mine = t.execute("DELETE FROM dashboard_code WHERE digest = $1", digest) == 1\n',
        new="    is_mine = True\n",
        test=f"{_LOGINS}a_code_logs_one_browser_in_and_its_login_is_listed_and_revoked[sqlite]",
    ),
    Mutation(
        name="dashboard-owner",
        mechanism="a login of one scope changes no settings",
        file="src/clew/api/authorization.py",
        old="    if callers in (CallerKind.LOCAL, CallerKind.OWNER) and context.viewer != LOCAL:\n",
        new="    if callers is CallerKind.LOCAL and context.viewer != LOCAL:\n",
        test="tests/features/test_maintenance.py::"
        "test_a_client_of_one_scope_has_none_of_these_operations[sqlite]",
    ),
    Mutation(
        name="log-redaction",
        mechanism="the log that is kept in memory has no secrets",
        file="src/clew/cli/logs.py",
        old="            RedactionProcessor(settings),\n            _keep_record,\n",
        new="            _keep_record,\n            RedactionProcessor(settings),\n",
        test="tests/features/test_maintenance.py::test_no_secret_is_in_the_log_that_is_kept",
    ),
    Mutation(
        name="dashboard-logout",
        mechanism="connections end with the login of their browser",
        file="src/clew/api/caller.py",
        old="    while await caller.is_valid():  # noqa: ASYNC110\n",
        new="    while True:  # noqa: ASYNC110\n",
        test=f"{_LOGINS}a_code_logs_one_browser_in_and_its_login_is_listed_and_revoked[sqlite]",
    ),
    Mutation(
        name="push-service",
        mechanism="the gateway sends notices to push services only",
        file="src/clew/features/dashboard/push_subscriptions.py",
        old="    if not is_known and f",
        new="    if False and f",
        test="tests/unit/test_push_crypto.py::"
        "test_the_gateway_sends_to_push_services_only[https://localhost/x]",
    ),
    Mutation(
        name="push-login",
        mechanism="notices end with the login of their browser",
        file="src/clew/features/dashboard/push_subscriptions.py",
        old="SELECT 1 FROM dashboard_login l WHERE l.id = login AND l.expires_at > $2",
        new="SELECT 1 WHERE $2 > 0",
        test="tests/features/test_dashboard_push.py::"
        "test_notices_are_told_once_and_end_with_their_login[sqlite]",
    ),
    Mutation(
        name="push-once",
        mechanism="a notice is told once",
        file="src/clew/features/dashboard/push_sender.py",
        old="        if not await self._store.write(subscriptions.claim, notice.subject):\n",
        new="        if False:\n",
        test="tests/features/test_dashboard_push.py::"
        "test_notices_are_told_once_and_end_with_their_login[sqlite]",
    ),
)
