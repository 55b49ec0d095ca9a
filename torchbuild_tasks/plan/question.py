"""The question of a plan, in one value: request, facts, rows and settings.

Also the one place where the precedence stands:
flag > the user's environment > torchbuild.toml > the user-wide file > preset > helper exports > default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog import match as rows
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.model import Choice, Cuda, Era, Facts, Source
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.plan.settings import Settings, split_assignment
from torchbuild_tasks.text.words import as_word, shell_line
from torchbuild_tasks.values import replace

DEFAULT_PRESET = "dev"
_DEVICES = (("cpu", "0"), ("cuda", "1"))  # the flag, and the USE_CUDA that it means
_DECIDING = ("cpu", "cuda", "preset", "config", "set")  # the flags that say which parts of torch are built
# Where CMake looks for libraries first, each by a list of folders.
PREFIX_PATH: Final = "CMAKE_PREFIX_PATH"
SEARCHED: Final = (PREFIX_PATH, "CMAKE_LIBRARY_PATH")
LAYERS: tuple[Source, ...] = ("flag", "environment", "torchbuild.toml", "preset", "helper", "default")

BOM: Final = "\ufeff"  # some editors of Windows begin a file with it


def say_unseen(choices: Iterable[Choice]) -> str:
    """Name what was not looked into."""
    return " and ".join(f"{each.name}={each.value}" for each in choices) + ", which is on another machine"


class Question(msgspec.Struct, frozen=True, dict=True):
    """The input of every decision, and what is derived from it."""

    request: BuildRequest
    facts: Facts
    catalog: Catalog
    settings: Settings = msgspec.field(default_factory=Settings)

    def with_toolkit(self, word: str, assignments: tuple[str, ...]) -> Question:
        """Return the question with another --cuda-toolkit, and of the --set flags these."""
        kept = tuple(name for name in self.request.from_environment if name != "cuda_toolkit")
        request = replace(self.request, cuda_toolkit=word, set=assignments, from_environment=kept)
        asked = replace(self, request=request)
        return asked._with_derived(self) if assignments == self.request.set else asked

    def with_cuda(self, cuda: Cuda) -> Question:
        """Return the question for a machine with other facts about CUDA."""
        return replace(self, facts=replace(self.facts, cuda=cuda))._with_derived(self, "cuda")

    def _with_derived(self, other: Question, *but: str) -> Question:
        """Take over what another question has derived of the same values: a plan tries fifty toolkits."""
        _ = other.version, other.decided  # what every toolkit is judged by
        self.__dict__.update({name: value for name, value in other.__dict__.items() if name not in but})
        return self

    @cached_property
    def read_version(self) -> Version | None:
        """The torch version that the checkout gives itself; None where that cannot be read."""
        return rows.parse_version((self.facts.tree.version or "").lstrip(BOM))

    @cached_property
    def version(self) -> Version | None:
        """The torch version of the checkout; where it cannot be read, that which it is planned like.

        Rows of releases that exclude each other must not apply together. None where there is no checkout.
        """
        guessed = None if self.facts.tree.problem else rows.row_version(self.row.latest)
        return self.read_version or guessed

    @cached_property
    def row(self) -> TorchRow:
        """The catalog's row for that version, or the nearest older one."""
        return rows.torch_row(self.catalog, self.read_version)[0]

    @cached_property
    def has_row(self) -> bool:
        """Say whether that row is of this version's own series; else its limits are a guess."""
        return rows.torch_row(self.catalog, self.read_version)[1]

    @property
    def era(self) -> Era:
        """The build system; setuptools where the checkout does not say (a finding does)."""
        return self.facts.tree.era or "setuptools"

    @property
    def separator(self) -> str:
        """Return the separator of paths on the host that is planned for."""
        return "\\" if self.facts.host.os == "windows" else "/"

    @cached_property
    def cuda(self) -> Cuda:
        """Return the facts about CUDA; empty where they were not gathered (`facts.cuda` is None)."""
        return self.facts.cuda or Cuda()

    @property
    def build_dir(self) -> str:
        """Return the build tree: the one that the checkout configures, else `build` inside it."""
        return self.facts.tree.build_dir or self.join("build")

    def join(self, *parts: str) -> str:
        """Join parts to the checkout's root, in the style of the host that is planned for."""
        return self.separator.join((self.facts.tree.root.rstrip("/\\"), *parts))

    def line(self, *argv: str) -> str:
        """Return a command as one would type it on the machine that is planned for."""
        return shell_line(argv, windows=self.facts.host.os == "windows")

    @property
    def device_and_switches(self) -> str:
        """The flags on this command line that decide what is built, to be repeated with another verb."""
        request = self.request
        words = ""
        for name in (each for each in _DECIDING if each not in request.from_environment):
            value = getattr(request, name)
            if value is True:
                words += f" {flag_name(name)}"
            elif value:
                several = value if isinstance(value, tuple) else (value,)
                words += "".join(f" {flag_name(name)} {as_word(each)}" for each in several)
        return words

    def given(self, name: str) -> tuple[Any, Source, str] | None:
        """Return the value that a flag or the settings file gives a field, with the layer and the reason."""
        value = getattr(self.request, name)
        if value not in (None, False, ()):
            return value, *self._origin(name)
        if self.settings.values.get(name) not in (None, False):
            because = f"{flag_name(name).lstrip('-')} in {self.settings.place(name)}"
            return self.settings.values[name], "torchbuild.toml", because
        return None

    def _origin(self, name: str) -> tuple[Source, str]:
        """Return the layer of a flag that was given, and the reason."""
        if name in self.request.from_environment:
            return "environment", f"{variable_name(name)} in the environment"
        return "flag", f"{flag_name(name)} on the command line"

    def value(self, name: str, default: str) -> str:
        """Return the value of such a field, without the reason."""
        given = self.given(name)
        return str(given[0]) if given else default

    def choose(self, label: str, name: str, default: str, because: str) -> Choice:
        """Decide a field that only flags and the settings file can carry."""
        if given := self.given(name):
            return Choice(name=label, value=str(given[0]), because=given[2], source=given[1])
        return Choice(name=label, value=default, because=because)

    def asked(self, field: str, *variables: str) -> Choice | None:
        """Return what a field or the variables that say the same ask for: that of the stronger layer.

        In one layer, and in one table of a settings file, the field counts, and then the first variable.
        """
        named = [choice for choice in map(self.decided.get, variables) if choice and choice.value]
        found = [(self._rank(choice.source, f"set.{choice.name}"), choice) for choice in named]
        if given := self.given(field):
            own = Choice(name=field, value=str(given[0]), because=given[2], source=given[1])
            found.insert(0, (self._rank(own.source, field), own))
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def _rank(self, layer: Source, key: str) -> tuple[int, int]:
        """Return where something stands in the precedence; of the settings also by table and file."""
        return LAYERS.index(layer), self.settings.rank(key) if layer == "torchbuild.toml" else 0

    @cached_property
    def assignments(self) -> Mapping[str, str]:
        """The --set flags, a later one winning."""
        return dict(split_assignment(text) for text in self.request.set)

    @cached_property
    def preset(self) -> Choice:
        """The preset that the build takes."""
        if self.request.mixed:
            return self.choose("preset", "preset", "full", "the wheel's builder left nothing out, either")
        return self.choose("preset", "preset", DEFAULT_PRESET, "the preset for working on PyTorch")

    @cached_property
    def decided(self) -> Mapping[str, Choice]:
        """Each build variable that any layer names, with its value by the precedence."""
        found: dict[str, Choice] = {}
        for choice in self._layers():
            found.setdefault(choice.name, choice)
        return found

    def unseen(self, *names: str) -> tuple[Choice, ...]:
        """Return those of these variables that name a place of another machine (--facts) unseen.

        Its facts tell of what its own environment names.
        """
        named = filter(None, map(self.decided.get, names)) if self.request.facts else ()
        return tuple(choice for choice in named if choice.value and choice.source != "environment")

    def _layers(self) -> Iterator[Choice]:
        """Yield the build variables of all layers, the strongest layer first."""
        for name, value in self.assignments.items():
            layer, because = self._origin("set")
            yield Choice(name=name, value=value, because=because, source=layer)
        for device, value in _DEVICES:
            if getattr(self.request, device):
                layer, because = self._origin(device)
                yield Choice(name="USE_CUDA", value=value, because=because, source=layer)
        for name, value in self.facts.environ.items():
            yield Choice(name=name, value=value, because=f"{name} in the environment", source="environment")
        yield from self._in_settings()
        for name, value in self._preset_variables().items():
            because = "; ".join(filter(None, (f"preset {self.preset.value}", self._say_saving(name, value))))
            yield Choice(name=name, value=value, because=because, source="preset")
        yield Choice(name="USE_CUDA", value="0", because="a CPU build unless --cuda is given")

    def _in_settings(self) -> Iterator[Choice]:
        """Yield what the settings say, the strongest table first; in one the key counts before [set]."""
        said = {}
        for device, value in _DEVICES:
            if self.settings.values.get(device):
                because = f"{device} in {self.settings.place(device)}"
                said[device] = ("USE_CUDA", value, because)
        for name, value in self.settings.variables.items():
            said[f"set.{name}"] = (name, value, f"[set] in {self.settings.place(f'set.{name}')}")
        for key in sorted(said, key=self.settings.rank):
            name, value, because = said[key]
            yield Choice(name=name, value=value, because=because, source="torchbuild.toml")

    def _preset_variables(self) -> dict[str, str]:
        """Return the variables of the chosen preset that this checkout reads, with the system's overlay."""
        merged: dict[str, str] = {}
        for row in rows.preset_rows(self.catalog, self.preset.value, self.facts.host.os):
            merged |= row.variables
        return {name: value for name, value in merged.items() if self.knows(name)}

    def knows(self, name: str) -> bool:
        """Say whether the checkout reads a switch: by its files, or by rows where they were not read."""
        if reads := self.facts.tree.reads:
            return name in reads.names or name in reads.direct
        return self.has_switch(name)

    def has_switch(self, name: str) -> bool:
        """Say whether no row gives a switch to other releases than this one."""
        read_by = (row.torch for row in self.catalog.dated if name in row.names)
        return all(rows.applies(torch, self.version) for torch in read_by)

    def _say_saving(self, name: str, value: str) -> str:
        """Say what a switch leaves out and what that saves, as measured; "" where no row has it."""
        row = next((r for r in self.catalog.switch if (r.variable, r.value) == (name, value)), None)
        if row is None or not row.compiles:
            return row.what if row else ""
        cpu = f", {row.cpu:g} % of their CPU time" if row.cpu else ""
        counts = f"saves {row.compiles:,} of {row.of:,} compiles{cpu} in a CPU build of {row.torch}"
        return f"{row.what}: {counts}"
