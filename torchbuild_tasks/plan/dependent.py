"""Switches that depend on others: CMake turns them off whatever they are set to, so the plan does.

The conditions are those of the checkout's own cmake_dependent_option()s, else rows of needs.toml. They
are true, false, or unknown before CMake has run (None); only a known false one switches something off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from torchbuild_tasks.catalog.match import applies
from torchbuild_tasks.model import Choice, Finding, Status
from torchbuild_tasks.plan.names import FALSE_WORDS, TRUE_WORDS
from torchbuild_tasks.plan.question import Question

OTHER_DEVICES: Final = frozenset(("USE_ROCM", "USE_XPU", "USE_MPS"))
# What this tool does not build for. Upstream's default for USE_ROCM is on, and off where ROCm is not found.
ABSENT: Final = frozenset(
    (
        *("ANDROID", "APPLE", "BUILD_LITE_INTERPRETER", "EMSCRIPTEN", "INTERN_BUILD_MOBILE", "IOS", "MINGW"),
        *("MLCOMPUTE_FOUND", "MPS_FOUND", "ROCM", *OTHER_DEVICES),
    )
)
_TOKEN: Final = re.compile(r'[()]|"[^"]*"|[^\s()"]+')


class Blocked(NamedTuple):
    """A switch that is on and cannot be: its condition, where that is written, and what of it is off."""

    choice: Choice
    needs: str
    place: str
    off: tuple[str, ...]
    roots: tuple[str, ...]  # what would have to be on for that


class Settled(NamedTuple):
    """The choices with those switched off that cannot be on."""

    choices: tuple[Choice, ...]
    blocked: tuple[Blocked, ...] = ()


def settle_switches(question: Question, choices: tuple[Choice, ...]) -> Settled:
    """Switch off what depends on something that is off, recursively."""
    state = State(question, {choice.name: choice.value for choice in choices})
    blocked: dict[str, Blocked] = {}
    on = [choice for choice in choices if state.of(choice.name)]
    before = -1
    while before < len(blocked):  # one that is off may be what another needs
        before = len(blocked)
        for choice in on:
            if choice.name not in blocked and (why := state.why_off(choice.name)):
                blocked[choice.name] = Blocked(choice, *why, roots=tuple(state.roots(why[2])))
                state.values[choice.name] = "0"
    settled = tuple(_switch_off(choice, blocked.get(choice.name)) for choice in choices)
    return Settled(settled, tuple(blocked.values()))


def _switch_off(choice: Choice, blocked: Blocked | None) -> Choice:
    if blocked is None:
        return choice
    because = f"{choice.because}; off, because it needs {blocked.needs} ({blocked.place})"
    return Choice(name=choice.name, value="0", because=because, source=choice.source)


def check_switches(question: Question, blocked: tuple[Blocked, ...]) -> tuple[Finding, ...]:
    """Report what was asked for and cannot be; a preset or a default that is switched off is not reported."""
    found = [*_not_planned(question, {each.choice.name for each in blocked})]
    for choice, needs, place, off, roots in blocked:
        if choice.source not in ("flag", "environment", "torchbuild.toml"):
            continue
        text = f"{choice.name}={choice.value} ({choice.because}) cannot be: it needs {needs} ({place})"
        if off:
            text += f", and {', '.join(off)} {'is' if len(off) == 1 else 'are'} off"
        fix = f"Drop {choice.name}{_other_way(question, roots)}."
        if choice.source != "flag":
            fix = f"It is off in this build. {fix}"
        status: Status = "error" if choice.source == "flag" else "warn"
        found.append(Finding(id="switches", status=status, text=text, fix=fix))
    return tuple(found)


def _not_planned(question: Question, off: set[str]) -> Iterator[Finding]:
    """Report other devices that are switched on: CMake goes by it, and nothing here does."""
    for name in OTHER_DEVICES - off:
        choice = question.decided.get(name)
        if choice and truth(choice.value):
            text = f"{name}={choice.value} ({choice.because}): nothing of such a build is planned or verified"
            fix = f"Drop {name}, or build as upstream's README says for that device."
            yield Finding.warn("switches", text, fix)


def _other_way(question: Question, roots: tuple[str, ...]) -> str:
    """Return what would switch on what is needed, as the end of a sentence."""
    if "USE_CUDA" in roots:
        return ", or build with --cuda" + (" in place of --cpu" if question.given("cpu") else "")
    # Of the words of a condition, what CMake finds out by itself (CPU_INTEL, LINUX) is no switch.
    found = State(question, {}).known
    wanted = [name for name in roots if name not in ABSENT and name not in found]
    return f", or use --set {wanted[0]}=1" if wanted else ""


class State:
    """The value that each switch will have, as far as that is known."""

    def __init__(self, question: Question, values: Mapping[str, str]) -> None:
        reads = question.facts.tree.reads
        self.values = dict(values)
        self.switches = {switch.name: switch for switch in reads.switches} if reads else {}
        self.os = question.facts.host.os
        self.is_known: Callable[[str], bool] = question.knows if reads else lambda name: True
        self.rows = [row for row in question.catalog.need if applies(row.torch, question.version)]
        intel = question.facts.host.arch == "x86_64"
        self.known = {
            **dict.fromkeys(("LINUX", "UNIX"), self.os == "linux"),
            **dict.fromkeys(("WIN32", "MSVC"), self.os == "windows"),
            "CPU_INTEL": intel,
            "CPU_AARCH64": question.facts.host.arch == "aarch64",
        }

    def of(self, name: str, above: tuple[str, ...] = ()) -> bool | None:
        """Return what a switch or another variable of a condition will be."""
        if name in self.values:
            return truth(self.values[name])
        if name in self.known:
            return self.known[name]
        if name in ABSENT:
            return False
        switch = self.switches.get(name)
        if switch is None or name in above:
            return None
        if self.why_off(name, (*above, name)) is not None:
            return False
        return truth(switch.default)

    def why_off(self, name: str, above: tuple[str, ...] = ()) -> tuple[str, str, tuple[str, ...]] | None:
        """Return why a switch cannot be on: its condition, where that is written, and what of it is off."""
        switch = self.switches.get(name)
        for part in switch.needs.split(";") if switch else ():
            if self.holds(part, above) is False:
                names = [word for word in _TOKEN.findall(part) if word.startswith(("USE_", "BUILD_"))]
                off = tuple(each for each in names if self.of(each, above) is False)
                return part.strip(), switch.place if switch else "", off
        for row in self.rows if switch or self.is_known(name) else ():  # what nothing reads needs nothing
            if name not in row.names:
                continue
            if on := [each for each in row.against if self.of(each, above)]:
                return f"{' and '.join(on)} off", row.source, ()
            if row.os and row.os != self.os:
                return row.os.capitalize(), row.source, ()
            if switch and switch.needs:  # the checkout's own condition says the rest
                continue
            if row.any and all(self.of(each, above) is False for each in row.any):
                return " or ".join(row.any), row.source, tuple(row.any)
        return None

    def roots(self, off: tuple[str, ...], above: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield what can be switched on of what is off, or what that in turn needs."""
        for name in off:
            why = self.why_off(name, (*above, name)) if name not in above else None
            if why is None:
                yield name
            else:
                yield from self.roots(why[2], (*above, name))

    def holds(self, condition: str, above: tuple[str, ...] = ()) -> bool | None:
        """Evaluate a condition of CMake's if(): NOT binds closer than AND, AND closer than OR."""
        tokens = _TOKEN.findall(condition)
        value, rest = self._either(tokens, above)
        return None if rest else value

    def _either(self, tokens: list[str], above: tuple[str, ...]) -> tuple[bool | None, list[str]]:
        value, tokens = self._both(tokens, above)
        while tokens[:1] == ["OR"]:
            other, tokens = self._both(tokens[1:], above)
            value = True if value or other else None if value is None or other is None else False
        return value, tokens

    def _both(self, tokens: list[str], above: tuple[str, ...]) -> tuple[bool | None, list[str]]:
        value, tokens = self._one(tokens, above)
        while tokens[:1] == ["AND"]:
            other, tokens = self._one(tokens[1:], above)
            value = False if value is False or other is False else None if None in (value, other) else True
        return value, tokens

    def _one(self, tokens: list[str], above: tuple[str, ...]) -> tuple[bool | None, list[str]]:
        if not tokens:
            return None, []
        first, rest = tokens[0], tokens[1:]
        if first == "NOT":
            value, rest = self._one(rest, above)
            return None if value is None else not value, rest
        if first == "(":
            value, rest = self._either(rest, above)
            return value, rest[1:]
        if rest and rest[0] not in ("AND", "OR", ")"):  # a comparison, or a test such as DEFINED X
            end = next((n for n, word in enumerate(rest) if word in ("AND", "OR", ")")), len(rest))
            return None, rest[end:]
        return self.of(first, above), rest


def truth(value: str) -> bool | None:
    """Say whether a value means on; None for one that CMake would look up."""
    word = value.strip('"').upper()
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS or not word else None
