"""The safeguards of skills: what is trusted, what stays in force, and what asks."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SKILLS = "src/clew/features/skills"
_TESTS = "tests/features/test_skills.py::test_"
_LOADED = f"{_TESTS}a_trusted_skill_is_told_and_loaded_and_any_change_ends_that_at_once"
_IN_FORCE = f"{_TESTS}a_loaded_skill_is_in_force_after_compaction_and_restart"
_NARROWED = f"{_TESTS}while_a_skill_is_loaded_calls_that_it_does_not_list_ask_whatever_was_granted"

SKILLS = (
    Mutation(
        name="skills-digest",
        mechanism="a skill is trusted as its bytes are, not by its name",
        file=f"{_SKILLS}/library.py",
        old="        return self.trusted_digests.get((skill.source.name, skill.name)) == skill.digest",
        new="        return (skill.source.name, skill.name) in self.trusted_digests",
        test=f"{_LOADED}[sqlite]",
    ),
    Mutation(
        name="skills-mode",
        mechanism="a file that becomes a program changes the digest",
        file=f"{_SKILLS}/scanning.py",
        old='"x" if one.is_executable else "-"',
        new='"-"',
        test=f"{_TESTS}trust_is_given_to_what_was_shown_and_ends_with_any_change[sqlite]",
    ),
    Mutation(
        name="skills-told-once",
        mechanism="people are told once that a skill has changed",
        file=f"{_SKILLS}/telling.py",
        old="    trust.mark_told(t, untold)",
        new="    trust.mark_told(t, [])",
        test=f"{_LOADED}[sqlite]",
    ),
    Mutation(
        name="skills-in-force",
        mechanism="the next session begins with the text of the skills that were loaded",
        file=f"{_SKILLS}/session_text.py",
        old="    lines = [_IN_FORCE] if held else []",
        new="    lines, held = [_IN_FORCE], []",
        test=f"{_IN_FORCE}[sqlite]",
    ),
    Mutation(
        name="skills-narrowing",
        mechanism="a call that a loaded skill does not list asks",
        file="src/clew/core/call_policy.py",
        old="for one in turn.narrowings if not _is_listed(call, one)",
        new="for one in turn.narrowings[:0] if not _is_listed(call, one)",
        test=f"{_NARROWED}[sqlite]",
    ),
    Mutation(
        name="skills-link",
        mechanism="a link out of its folder makes a skill unusable",
        file=f"{_SKILLS}/scanning.py",
        old="    if not actual.is_relative_to(root):",
        new="    if False and not actual.is_relative_to(root):",
        test=f"{_TESTS}what_cannot_be_used_is_named_with_its_reason_and_the_rest_loads",
    ),
)
