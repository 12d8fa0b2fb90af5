"""
A program that confines itself with Landlock and seccomp, runs a command and ends what is left.

``python -I -S landlock_launcher.py RULES COMMAND …``; it imports nothing of Clew, to start fast.
It stays as the parent of the command, and ends everything that descends from it at once: with
signals kept inside of its domain, ``kill(-1)`` reaches all of those and nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import stat
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
CAPABILITIES = 64
#: Exit code of the launcher itself, as that of a shell for what cannot be run.
FAILED = 126

# Rights on files, in the order of their bits; those after the first 13 came with later versions.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FIRST_RIGHTS = (1 << 13) - 1
MAKE_DEVICES = (1 << 6) | (1 << 11)
READ = EXECUTE | READ_FILE | READ_DIR
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
SCOPES_SINCE, SCOPE_SIGNALS, ALL_SCOPES = 6, 2, 3  # all: signals and abstract sockets

#: By machine: its place in the tuples below, and the number of its architecture.
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
#: System calls, as numbered on each machine.
CALLS = {
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
    "fchmodat2": (452, 452),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "open_tree_attr": (467, 467),
    "file_setattr": (469, 469),
    "prlimit64": (302, 261),
    "chroot": (161, 51),
    "syslog": (103, 116),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "shmctl": (31, 195),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_unlink": (241, 181),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "clone": (56, 220),
    "clone3": (435, 435),
}

# Instructions of a filter, and the places in what it looks at.
LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ALLOW = (RETURN, 0, 0, 0x7FFF0000)
REFUSE = (RETURN, 0, 0, 0x00050000 | errno.EPERM)
UNKNOWN_CALL = (RETURN, 0, 0, 0x00050000 | errno.ENOSYS)

# Halves of arguments: 0 is the lower one of the first argument, 1 its upper one, 2 the second's.
#: Calls that are refused unless each of these halves has one of these values: processes set limits
#: and priorities for themselves only, and dates only of files that they have open.
ONLY_WITH: dict[str, dict[int, Sequence[int]]] = {
    "prlimit64": {0: (0,)},
    "sched_setparam": {0: (0,)},
    "sched_setscheduler": {0: (0,)},
    "sched_setaffinity": {0: (0,)},
    "sched_setattr": {0: (0,)},
    "setpriority": {0: (0,), 2: (0,)},
    "ioprio_set": {0: (1,), 2: (0,)},
    "utimensat": {2: (0,), 3: (0,)},
}
#: A process in namespaces of its own, in which it is root.
NEW_NAMESPACES = {"clone": (0, 0x7E020000)}
#: A program that runs with the rights of its owner, for others outside of the sandbox.
SETUID = {"chmod": (2, 0o6000), "fchmod": (2, 0o6000), "fchmodat": (4, 0o6000)}
SETUID["fchmodat2"] = SETUID["fchmodat"]
#: The network, other processes, mounts, keys and memory of this user's other programs, and what
#: Landlock does not control on files elsewhere: their modes, owners, attributes and dates.
REFUSED = [name for name in CALLS if name not in (*ONLY_WITH, *NEW_NAMESPACES)]


def call(number: int, *arguments: object) -> int:
    """Make a system call."""
    found = LIBC.syscall(number, *arguments)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def control(option: int, *values: object) -> None:
    """Call ``prctl``."""
    padded = [*values, *[0] * (4 - len(values))]
    if LIBC.prctl(option, *(ctypes.c_ulong(v) if isinstance(v, int) else v for v in padded)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 if there is none."""
    try:
        return call(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def restrict_files(readable: list[str], writable: list[str]) -> None:
    """Leave only these folders and files; refuse signals to processes outside, where possible."""
    version = landlock_version()
    if version < 1:
        raise OSError(errno.EOPNOTSUPP, "Landlock is not enabled in this kernel")
    handled = FIRST_RIGHTS
    for least, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        handled |= right if version >= least else 0
    ruleset = create_ruleset(handled, ALL_SCOPES if version >= SCOPES_SINCE else 0)
    for paths, rights in ((readable, READ), (writable, handled & ~MAKE_DEVICES)):
        for path in paths:
            add_rule(ruleset, path, rights & handled)
    restrict_self(ruleset)


def create_ruleset(handled: int, scopes: int) -> int:
    """Return the descriptor of a new ruleset; old kernels know only the first field."""
    attributes = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    return call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)


def restrict_self(ruleset: int) -> None:
    """Put this process, and all that it starts, under the ruleset."""
    control(PR_SET_NO_NEW_PRIVS, 1)
    call(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def confine_signals() -> bool:
    """Return whether signals of this process now reach only what descends from it."""
    if landlock_version() < SCOPES_SINCE:
        return False
    restrict_self(create_ruleset(0, SCOPE_SIGNALS))
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


def add_rule(ruleset: int, path: str, rights: int) -> None:
    """Allow the rights on what is at a path, if anything is."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= ON_FILES
    call(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def build_filter(
    names: Sequence[str],
    only_with: Mapping[str, Mapping[int, Sequence[int]]],
    without_bits: Mapping[str, tuple[int, int]],
) -> bytes:
    """
    Return a program of seccomp that refuses the calls of these names.

    ``only_with`` names calls that are refused unless halves of arguments have one of the given
    values, ``without_bits`` those that are refused if a half has one of these bits.

    :raises KeyError: if this machine's numbers are not known
    """
    place, architecture = MACHINES[platform.machine()]
    bodies = {name: [UNKNOWN_CALL if name == "clone3" else REFUSE] for name in names}
    bodies |= {name: check_values(halves) for name, halves in only_with.items()}
    bodies |= {name: check_bits(half, bits) for name, (half, bits) in without_bits.items()}
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, architecture),
        REFUSE,
        (LOAD, 0, 0, NUMBER),
        (IF_AT_LEAST, 0, 1, 0x40000000),  # x32, a second numbering
        REFUSE,
    ]
    for name, body in bodies.items():
        if (number := CALLS[name][place]) is not None:
            program += [(IF_EQUAL, 0, len(body), number), *body]
    program.append(ALLOW)
    return b"".join(struct.pack("HBBI", *line) for line in program)


def check_values(halves: Mapping[int, Sequence[int]]) -> list[tuple[int, int, int, int]]:
    """Return instructions that refuse a call unless halves of its arguments have these values."""
    body: list[tuple[int, int, int, int]] = []
    for half, values in halves.items():
        body.append((LOAD, 0, 0, FIRST_ARGUMENT + 4 * half))
        body += [(IF_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
        body.append(REFUSE)
    return [*body, ALLOW]


def check_bits(half: int, bits: int) -> list[tuple[int, int, int, int]]:
    """Return instructions that refuse a call if a half of an argument has one of these bits."""
    return [(LOAD, 0, 0, FIRST_ARGUMENT + 4 * half), (IF_ANY_BIT, 0, 1, bits), REFUSE, ALLOW]


def refuse_calls() -> None:
    """Refuse calls to this process and all that it starts."""
    program = build_filter(REFUSED, ONLY_WITH, NEW_NAMESPACES)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    control(PR_SET_SECCOMP, 2, ctypes.c_char_p(header))


def drop_capabilities() -> None:
    """Take care that root has no more rights than its files after ``exec``."""
    for capability in range(CAPABILITIES):
        try:
            control(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # the last one that the kernel knows; or not root, who has none


def limit_processes(count: int) -> None:
    """Let this user have so many processes more; the kernel does not limit root."""
    if os.getuid() == 0:
        return
    running = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            running += os.stat(f"/proc/{name}").st_uid == os.getuid()
    with suppress(ValueError, OSError):  # a lower limit is in force
        resource.setrlimit(resource.RLIMIT_NPROC, (running + count, running + count))


def confine(rules: dict[str, Any]) -> None:
    """Take the rights away that the command does not get."""
    limit_processes(rules["processes"])
    drop_capabilities()
    restrict_files(rules["readable"], rules["writable"])
    refuse_calls()


def list_children() -> list[int]:
    """Return the children of this process, which has one thread."""
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
        return [*map(int, file.read().split())]


def end_descendants(*, confined: bool) -> None:
    """Kill all that descends from this process, and wait for it."""
    while True:
        # One step for the kernel: no process can start another one in between.
        for process in [-1] if confined else list_children():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def supervise(command: int, *, confined: bool) -> int:
    """Wait for the command; return its exit code as a shell has it."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == command:
            end_descendants(confined=confined)
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main() -> int:
    """Run the command that the arguments name."""
    rules, argv = json.loads(sys.argv[1]), sys.argv[2:]
    os.environ.update(rules["environment"])
    confined = False

    def end_now(number: int, _: object) -> None:
        # It comes once for each thread of the supervisor: in the middle of this it would fail.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants(confined=confined)
        os._exit(128 + number)

    # When the supervisor dies, everything ends in the same way. Before there is a command: what
    # that starts would outlive a process that does not listen yet.
    signal.signal(signal.SIGTERM, end_now)
    control(PR_SET_PDEATHSIG, signal.SIGTERM)
    control(PR_SET_CHILD_SUBREAPER, 1)
    is_host = rules["host"]  # nothing is kept apart, but everything is ended
    confined = not is_host and confine_signals()
    command = os.fork()
    if command:
        return supervise(command, confined=confined)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        control(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chdir(rules["workspace"])
        if not is_host:
            confine(rules)
        os.execvp(argv[0], argv)
    except (OSError, KeyError) as error:
        os.write(2, f"the command cannot be confined or run: {error}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    sys.exit(main())
