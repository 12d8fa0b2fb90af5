"""The safeguards of the tools that run commands and read the web."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SHELL = "src/clew/features/shell"
_SUPERVISOR = "src/clew/sandbox/supervisor"
_SUPERVISED = "tests/integration/test_supervisor.py::test_"
_WEB = "src/clew/features/web"
_COMMANDS = "tests/features/test_shell.py::test_"
_DOCUMENTS = "tests/features/test_documents.py::test_"
_PAGES = "tests/features/test_web.py::test_"

TOOLS = (
    Mutation(
        name="killed-command",
        mechanism="the call of a command whose gateway died runs again, and adopts it",
        file=f"{_SHELL}/__init__.py",
        old='tool, effect="idempotent", facts',
        new='tool, effect="once", facts',
        test=f"{_COMMANDS}a_call_gets_the_output_of_its_command_although_the_gateway_was_killed",
    ),
    Mutation(
        name="supervised-life",
        mechanism="the lock tells whether a process lives, not its number",
        file="src/clew/sandbox/process_folder.py",
        old="return not try_lock_descriptor(lock, shared=True)",
        new="return True",
        test=f"{_SUPERVISED}a_command_does_not_outlive_its_supervisor",
    ),
    Mutation(
        name="orphaned-command",
        mechanism="a command in bubblewrap begins only after its supervisor has answered",
        file="src/clew/sandbox/bubblewrap.py",
        old="printf '\\\\0' && read -r _ || exit 1",
        new="printf '\\\\0' || read -r _",
        test="tests/integration/test_sandbox_commands.py"
        "::test_a_command_in_bubblewrap_does_not_begin_without_an_answer",
    ),
    Mutation(
        name="command-without-sandbox",
        mechanism="without a sandbox the tools are not offered",
        file=f"{_SHELL}/__init__.py",
        old="return (await find_sandbox(context)).sandbox is not None",
        new="await find_sandbox(context)\n    return True",
        test=f"{_COMMANDS}without_a_sandbox_the_tools_are_not_offered",
    ),
    Mutation(
        name="command-on-the-host",
        mechanism="the facts say that a command is not confined",
        file=f"{_SHELL}/__init__.py",
        old="sandbox=level,\n        network=not confined,",
        new='sandbox="work",\n        network=False,',
        test=f"{_COMMANDS}on_the_host_each_command_asks",
    ),
    Mutation(
        name="web-private-address",
        mechanism="an address outside of the public internet is refused",
        file="src/clew/sandbox/public_addresses.py",
        old="if not private and not _is_public(found):",
        new="if not private and found.is_multicast:",
        test=f"{_PAGES}redirects_are_followed_on_their_host_and_checked_each_time",
    ),
    Mutation(
        name="web-other-host",
        mechanism="a redirect to another host is not followed: the policy has not judged it",
        file=f"{_WEB}/fetching.py",
        old="if _site(found) != _site(target):",
        new="if not _site(found):",
        test=f"{_PAGES}redirects_are_followed_on_their_host_and_checked_each_time",
    ),
    Mutation(
        name="web-address-in-address",
        mechanism="an IPv4 address inside of an IPv6 address is found",
        file="src/clew/sandbox/public_addresses.py",
        old="return IPv4Address(found.packed[12:])",
        new="return found",
        test=f"{_PAGES}public_addresses_are_not_refused_and_private_ones_by_name_only",
    ),
    Mutation(
        name="web-metadata",
        mechanism="addresses with credentials are refused also where private ones are allowed",
        file="src/clew/sandbox/public_addresses.py",
        old="if found in _METADATA or _is_in(found, _LINK_LOCAL):",
        new="if not private and _is_in(found, _LINK_LOCAL):",
        test=f"{_PAGES}public_addresses_are_not_refused_and_private_ones_by_name_only",
    ),
    Mutation(
        name="web-pinned-address",
        mechanism="the connection goes to the address that was checked",
        file=f"{_WEB}/fetching.py",
        old='target.url.copy_with(host=address.partition("%")[0]),',
        new="target.url,",
        test=f"{_PAGES}a_name_is_looked_up_once_and_that_address_is_connected_to",
    ),
    Mutation(
        name="web-certificate",
        mechanism="the certificate is that of the name",
        file=f"{_WEB}/fetching.py",
        old='extensions={"sni_hostname": target.host},',
        new="extensions={},",
        test=f"{_PAGES}the_certificate_is_that_of_the_name_not_of_the_address",
    ),
    Mutation(
        name="web-bomb",
        mechanism="a packed body is unpacked up to a limit",
        file=f"{_WEB}/fetching.py",
        old="return unpack(raw, most)",
        new="return unpack(raw, 0)",
        test=f"{_PAGES}bodies_that_never_end_are_cut_and_bad_ones_are_named",
    ),
    Mutation(
        name="web-unseen-text",
        mechanism="hidden parts of a page are removed",
        file=f"{_WEB}/page_converter.py",
        old="    _remove_unseen(soup)\n    for",
        new="    for",
        test=f"{_PAGES}a_page_becomes_markdown_without_what_nobody_sees",
    ),
    Mutation(
        name="document-bomb",
        mechanism="an archive that unpacks to too much is not read",
        file="src/clew/documents/document_converter.py",
        old="if size > _UNPACKED or",
        new="if",
        test=f"{_DOCUMENTS}a_document_that_cannot_be_read_is_refused_with_a_sentence",
    ),
    Mutation(
        name="converter-memory",
        mechanism="a converter has limits",
        file="src/clew/documents/limited_launcher.py",
        old="resource.setrlimit(kind, (most, most))",
        new="pass",
        test=f"{_DOCUMENTS}a_converter_has_limits",
    ),
    Mutation(
        name="web-secret-in-url",
        mechanism="a URL with a secret is not fetched",
        file=f"{_WEB}/page_text.py",
        old="if any(redact_secrets(one) != one for one in (url, unquote(url))):",
        new="if not url:",
        test=f"{_PAGES}a_url_with_a_secret_is_not_sent",
    ),
    Mutation(
        name="half-a-secret",
        mechanism="a long output is shortened by whole lines",
        file="src/clew/sandbox/bounded_output.py",
        old="head = head[:end]",
        new="pass",
        test="tests/integration/test_sandbox_commands.py::test_a_line_is_shown_whole_or_not_at_all",
    ),
    Mutation(
        name="piece-of-a-secret",
        mechanism="a part of an output does not begin or end within a secret",
        file="src/clew/features/shell/supervision.py",
        old="    pieces = (part.before, part.data, part.after)\n",
        new='    pieces = (b"", part.data, b"")\n',
        test="tests/features/test_processes.py::test_a_part_of_an_output_from_any_byte_holds_no_piece_of_a_secret",
    ),
    Mutation(
        name="cut-line-of-a-file",
        mechanism="a long line is cut only after its secrets are masked",
        file="src/clew/features/files/reading.py",
        old="            one = redact_secrets(one)",
        new="            one = one",
        test="tests/features/test_files_texts.py::test_a_secret_is_not_cut_in_two_where_a_long_line_is",
    ),
    Mutation(
        name="web-unseen-characters",
        mechanism="characters that people do not see are removed",
        file=f"{_WEB}/page_text.py",
        old='return _UNSEEN_CHARACTERS.sub("", strip_sequences(text))',
        new="return strip_sequences(text)",
        test=f"{_PAGES}text_that_is_hidden_by_its_style_or_its_characters_is_removed",
    ),
)
