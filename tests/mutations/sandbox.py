"""The safeguards of the sandbox; without one, an escape attempt succeeds."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SANDBOX = "src/clew/sandbox"
_ESCAPES = "tests/integration/test_sandbox_escapes.py::test_"
_COMMANDS = "tests/integration/test_sandbox_commands.py::test_"
_LEVELS = "tests/integration/test_sandbox_levels.py::test_"
_FILES = "tests/integration/test_workspace.py::test_"

SANDBOX = (
    Mutation(
        name="sandbox-kernel-settings",
        mechanism="root in the sandbox cannot write to /proc",
        file=f"{_SANDBOX}/bubblewrap.py",
        old='*_MASKS, "--remount-ro", "/proc", "--dev", "/dev"),',
        new='*_MASKS, "--dev", "/dev"),',
        test=f"{_COMMANDS}root_in_the_sandbox_cannot_change_the_kernel",
    ),
    Mutation(
        name="sandbox-network",
        mechanism="a command has a network of its own, without a way out",
        file=f"{_SANDBOX}/bubblewrap.py",
        old='"--unshare-user", "--unshare-all", ',
        new='"--unshare-user", "--unshare-all", "--share-net", ',
        test=f"{_ESCAPES}bubblewrap_closes_every_way",
    ),
    Mutation(
        name="sandbox-read-only",
        mechanism="at read the workspace is bound read-only",
        file=f"{_SANDBOX}/bubblewrap.py",
        old='else ("--ro-bind", ',
        new='else ("--bind", ',
        test=f"{_COMMANDS}at_read_nothing_can_be_written",
    ),
    Mutation(
        name="landlock-calls",
        mechanism="calls that Landlock does not control are refused",
        file=f"{_SANDBOX}/landlock_launcher.py",
        old='    restrict_files(rules["readable"], rules["writable"])\n    refuse_calls()\n',
        new='    restrict_files(rules["readable"], rules["writable"])\n',
        test=f"{_ESCAPES}landlock_closes_every_way",
    ),
    Mutation(
        name="landlock-modes",
        mechanism="the mode of a file elsewhere is not changed",
        file=f"{_SANDBOX}/landlock_launcher.py",
        old="if name not in (*ONLY_WITH, *NEW_NAMESPACES)]",
        new='if name not in (*ONLY_WITH, *NEW_NAMESPACES, "chmod", "fchmodat")]',
        test=f"{_ESCAPES}landlock_closes_every_way",
    ),
    Mutation(
        name="landlock-limits",
        mechanism="only own limits can be set",
        file=f"{_SANDBOX}/landlock_launcher.py",
        old='"prlimit64": {0: (0,)}',
        new='"prlimit64": {}',
        test=f"{_ESCAPES}landlock_closes_every_way",
    ),
    Mutation(
        name="sandbox-filter",
        mechanism="calls that no namespace keeps apart are refused",
        file=f"{_SANDBOX}/bubblewrap.py",
        old='        return (*shell, program, "--seccomp", "3")\n',
        new="        return (*shell, program)\n",
        test=f"{_ESCAPES}bubblewrap_closes_every_way",
    ),
    Mutation(
        name="sandbox-no-silent-host",
        mechanism="without a working sandbox, none is chosen",
        file=f"{_SANDBOX}/selection.py",
        old="                SeatbeltSandbox(),\n",
        new="                SeatbeltSandbox(),\n                UnconfinedHost(),\n",
        test=f"{_LEVELS}without_any_sandbox_nothing_runs_and_it_is_said_why",
    ),
    Mutation(
        name="sandbox-environment",
        mechanism="a command gets nothing of the gateway's environment",
        file=f"{_SANDBOX}/request.py",
        old="    environment = {\n",
        new="    environment = {\n        **os.environ,\n",
        test=f"{_COMMANDS}the_environment_has_nothing_of_this_process",
    ),
    Mutation(
        name="sandbox-processes",
        mechanism="processes are counted",
        file=f"{_SANDBOX}/usage_limits.py",
        old="    if count.processes > processes:\n",
        new="    if False:\n",
        test=f"{_LEVELS}landlock_ends_all_processes_at_once",
    ),
    Mutation(
        name="sandbox-threads",
        mechanism="threads are counted",
        file=f"{_SANDBOX}/usage_limits.py",
        old="    if count.threads > threads:\n",
        new="    if False:\n",
        test=f"{_COMMANDS}threads_are_counted_as_well",
    ),
    Mutation(
        name="workspace-beneath",
        mechanism="a link out of the workspace is not followed",
        file=f"{_SANDBOX}/beneath.py",
        old="_RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)",
        new="_RESOLVE_NO_MAGICLINKS)",
        test=f"{_FILES}a_link_out_is_neither_read_nor_written_through",
    ),
    Mutation(
        name="workspace-regular-files",
        mechanism="only regular files are read",
        file=f"{_SANDBOX}/workspace.py",
        old='    if kind != "file":\n',
        new="    if False:\n",
        test=f"{_FILES}a_file_that_is_not_regular_is_refused_at_once",
    ),
    Mutation(
        name="sandbox-starter-pipe",
        mechanism="the pipe that ties a command to its starter is closed",
        file=f"{_SANDBOX}/process_folder.py",
        old="            yield\n        finally:\n            os.close(pipe)\n",
        new="            yield\n        finally:\n            pass\n",
        test=f"{_COMMANDS}a_command_closes_each_descriptor_once_in_the_loop_of_the_gateway",
    ),
    Mutation(
        name="sandbox-setuid",
        mechanism="no program with the rights of the gateway's user is left",
        file=f"{_SANDBOX}/bubblewrap.py",
        old="{**NEW_NAMESPACES, **SETUID}",
        new="NEW_NAMESPACES",
        test=f"{_ESCAPES}bubblewrap_closes_every_way",
    ),
    Mutation(
        name="sandbox-namespaces",
        mechanism="no namespace is entered by clone",
        file=f"{_SANDBOX}/landlock_launcher.py",
        old="build_filter(REFUSED, ONLY_WITH, NEW_NAMESPACES)",
        new="build_filter(REFUSED, ONLY_WITH, {})",
        test=f"{_ESCAPES}landlock_closes_every_way",
    ),
    Mutation(
        name="sandbox-dates",
        mechanism="dates of files elsewhere stay",
        file=f"{_SANDBOX}/landlock_launcher.py",
        old='"utimensat": {2: (0,), 3: (0,)}',
        new='"utimensat": {}',
        test=f"{_ESCAPES}landlock_closes_every_way",
    ),
    Mutation(
        name="sandbox-unnamed-files",
        mechanism="files without a name count for the limit of the disk",
        file=f"{_SANDBOX}/supervisor/disk_watch.py",
        old="unnamed = 0 if root is None else measure_unnamed_files(root)",
        new="unnamed = 0",
        test=f"{_COMMANDS}what_has_no_name_is_counted_as_well",
    ),
    Mutation(
        name="sandbox-unmeasured",
        mechanism="a workspace that cannot be measured may not grow",
        file=f"{_SANDBOX}/supervisor/disk_watch.py",
        old="self._limit + 1 + lost",
        new="self._limit + 1",
        test=f"{_COMMANDS}a_workspace_that_cannot_be_measured_may_not_grow",
    ),
)
