from __future__ import annotations

import json
from typing import Any

import pytest
from command_support import (
    HERE,
    SHIPPED,
    VERSIONS,
    Subject,
    a_job,
    a_workload,
    an_artifact,
    command_of,
    note,
    refusal,
)
from hypothesis import given
from hypothesis import strategies as st

from benchrunner.command import build_command
from benchrunner.definitions import Rule
from benchrunner.errors import ConfigurationError
from benchrunner.model import FlagNote

# ---------------------------------------------------------------- what a version does not know


def test_a_rule_drops_and_says_why() -> None:
    workload = a_workload(
        {"hard_rate_limit": 3},
        rule=[Rule(flag="hard_rate_limit", since="7.0", action="drop", reason="removed in 7.0")],
    )

    assert note(command_of(workload, "7.2.2"), "hard_rate_limit") == FlagNote(
        "hard_rate_limit", "3", None, "dropped", "removed in 7.0"
    )
    assert command_of(workload, "6.29.1").argv[-1] == "--hard_rate_limit=3"
    assert note(command_of(workload, "6.29.1"), "hard_rate_limit").action == "given"


def test_a_rule_renames() -> None:
    rule = Rule(flag="use_clock_cache", to="cache_type", value="clock_cache", action="rename")
    workload = a_workload({"use_clock_cache": True}, rule=[rule])

    assert note(command_of(workload, "7.9.2"), "use_clock_cache") == FlagNote(
        "use_clock_cache",
        "true",
        "--cache_type=clock_cache",
        "translated",
        "the workload's rule for 7.9.2",
    )
    assert command_of(workload, "7.2.2").argv[-1] == "--use_clock_cache=true"


def test_a_rename_without_a_value_keeps_it() -> None:
    rule = Rule(flag="compaction_fadvice", to="num", action="rename")

    assert (
        command_of(a_workload({"compaction_fadvice": 4}, rule=[rule]), "9.0.0").argv[-1]
        == "--num=4"
    )


def test_a_rename_gives_way_to_the_flag_itself() -> None:
    rule = Rule(flag="use_clock_cache", to="cache_type", value="x", action="rename")
    workload = a_workload({"use_clock_cache": True, "cache_type": "lru_cache"}, rule=[rule])

    command = command_of(workload, "7.9.2")

    assert command.argv[-1] == "--cache_type=lru_cache"
    assert note(command, "use_clock_cache").reason == "--cache_type is given itself"


def test_a_rename_to_what_is_not_known_either() -> None:
    rule = Rule(flag="prepopulate_block_cache", to="cache_type", action="rename")
    workload = a_workload({"prepopulate_block_cache": 1}, rule=[rule])

    assert refusal(workload, "6.11.4").message == (
        "step read of mine: 6.11.4 does not know --cache_type=1; known by 7.4 to 11.8"
    )
    dropping = workload.model_copy(update={"unknown_flags": "drop"})
    assert note(command_of(dropping, "6.11.4"), "prepopulate_block_cache").action == "dropped"


def test_a_rule_sets_another_value_where_the_flag_is_known() -> None:
    rule = Rule(flag="seed", value=2, since="7.2", action="set", reason="another generator")
    workload = a_workload(rule=[rule])

    assert note(command_of(workload, "7.2.2"), "seed") == FlagNote(
        "seed", "1", "--seed=2", "translated", "another generator"
    )
    assert command_of(workload, "7.1.1").argv[-1] == "--seed=1"


def test_a_rule_refuses() -> None:
    rule = Rule(flag="async_io", action="refuse", reason="the reads would differ")

    error = refusal(a_workload({"async_io": True}, rule=[rule]), "6.11.4")

    assert error.message == (
        "step read of mine: 6.11.4 cannot run with --async_io=true: the reads would differ"
    )
    assert error.hint == "leave 6.11.4 out, or the flag"


def test_an_unknown_flag_is_refused_with_the_versions_that_know_it() -> None:
    error = refusal(a_workload({"hard_rate_limit": 3}), "7.2.2")

    assert error.message == (
        "step read of mine: 7.2.2 does not know --hard_rate_limit=3; known by 6.10 to 6.29"
    )
    assert (
        error.hint
        == 'add a [[rule]] for hard_rate_limit to the workload, or unknown_flags = "drop"'
    )


def test_an_unknown_flag_is_dropped_when_the_workload_says_so() -> None:
    workload = a_workload({"async_io": True}, unknown_flags="drop")

    assert note(command_of(workload, "6.28.2"), "async_io") == FlagNote(
        "async_io", "true", None, "dropped", "6.28.2 does not know it; known by 7.2 to 11.8"
    )


@pytest.mark.parametrize("policy", ["drop", "refuse"])
def test_a_typing_mistake_is_refused_always(policy: str) -> None:
    error = refusal(a_workload({"compresion_type": "zstd"}, unknown_flags=policy))

    assert error.message == (
        "step read of mine: no version knows --compresion_type; did you mean 'compression_type'?"
    )
    pinned = refusal(a_workload(pinned={"format_versoin": 5}, unknown_flags=policy))
    assert "did you mean 'format_version'?" in pinned.message


def test_a_pinned_default_that_a_version_has_no_flag_for_is_dropped() -> None:
    workload = a_workload(pinned={"cache_type": "lru_cache"})

    assert note(command_of(workload, "7.2.2"), "cache_type") == FlagNote(
        "cache_type", "lru_cache", None, "dropped", "7.2.2 does not know it; known by 7.4 to 11.8"
    )
    assert command_of(workload, "7.4.4").argv[-1] == "--cache_type=lru_cache"


def test_the_binary_has_the_last_word() -> None:
    workload = a_workload({"async_io": True}, unknown_flags="drop")
    knows = an_artifact("6.28.2", known_flags=frozenset({"seed", "async_io"}))
    does_not = an_artifact("7.2.2", known_flags=frozenset({"seed"}))

    assert command_of(workload, artifact=knows).argv[-1] == "--async_io=true"
    assert note(command_of(workload, artifact=does_not), "async_io").action == "dropped"


def test_versions_outside_the_matrix_are_like_its_edge() -> None:
    workload = a_workload({"async_io": True})

    for version in ("12.0.0", "main"):
        assert command_of(workload, version).argv[-1] == "--async_io=true"
    assert "known by 6.10 to 6.29" in refusal(a_workload({"hard_rate_limit": 3}), "main").message
    assert command_of(a_workload({"hard_rate_limit": 3}), "6.2.0").argv[-1] == "--hard_rate_limit=3"


def test_without_a_list_of_flags_only_rules_with_bounds_are_believed() -> None:
    rules = [
        Rule(flag="a", action="drop", since="7.0", reason="gone"),
        Rule(flag="b", action="drop", reason="gone"),
    ]
    workload = a_workload({"a": 1, "b": 2}, rule=rules)

    command = build_command(
        workload.steps[0], Subject(workload, flags={}), a_job(workload), None, HERE
    )

    assert command.argv == ("db_bench", "--seed=1", "--b=2")


def test_without_a_matrix_a_binary_s_list_is_not_called_every_version() -> None:
    artifact = an_artifact(known_flags=frozenset({"seed", "threads"}))
    workload = a_workload({"thread": 1})

    with pytest.raises(ConfigurationError) as error:
        build_command(
            workload.steps[0], Subject(workload, flags={}), a_job(workload), artifact, HERE
        )

    assert error.value.message == (
        "step read of mine: 7.2.2 does not know --thread=1; no list says which versions do"
        "; did you mean 'threads'?"
    )


# ---------------------------------------------------------------- laws

FLAGS = sorted(SHIPPED.flags("rocksdb")["flags"])


@given(
    st.dictionaries(st.sampled_from(FLAGS), st.integers(1, 9) | st.booleans(), max_size=8),
    st.sampled_from(VERSIONS),
)
def test_every_flag_has_one_note_and_what_is_given_is_known(
    flags: dict[str, Any], version: str
) -> None:
    workload = a_workload({**flags, "seed": 1}, unknown_flags="drop")

    command = command_of(workload, version)

    matrix = SHIPPED.flags("rocksdb")["flags"]
    assert [n.flag for n in command.flags] == ["seed", *(f for f in flags if f != "seed")]
    assert command.argv[1:] == tuple(n.given for n in command.flags if n.given is not None)
    minor = tuple(map(int, version.split(".")[:2]))
    for one in command.flags:
        first, last = (
            tuple(map(int, matrix[one.flag][key].split("."))) for key in ("first", "last")
        )
        assert (one.action == "given") is (first <= minor <= last)
        assert one.reason or one.action == "given"


def test_notes_are_plain_data() -> None:
    command = command_of(a_workload({"num": 5}))

    assert json.dumps([[n.flag, n.asked, n.given, n.action, n.reason] for n in command.flags])
