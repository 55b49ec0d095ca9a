"""Decide the build of a helper from source: source, target, recipe, and the archive's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.source import HelperSourceRow, RecipeRow
from torchbuild_tasks.errors import PlanRefused, UsageError
from torchbuild_tasks.features.companions.choose import read_place
from torchbuild_tasks.model import Artifact, BuildPlan, Patch
from torchbuild_tasks.model.cuda import BuiltFor
from torchbuild_tasks.plan.jobs import choose_jobs
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import choose_build_type, decide, is_cuda, is_off
from torchbuild_tasks.text.words import did_you_mean
from torchbuild_tasks.values import toml_value

if TYPE_CHECKING:
    from torchbuild_tasks.plan.cuda.values import Arch


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The order for a build: the helper's row, its source (a folder, else a git address), its target.

    `because` says that this torch profits. `configuration` is release or debug, `system` "linux x86_64".
    """

    row: HelperSourceRow
    path: str = ""
    url: str = ""
    ref: str = ""
    cuda: str
    archs: tuple[Arch, ...]
    configuration: str
    system: str
    jobs: str
    because: str

    @property
    def arch_words(self) -> tuple[str, ...]:
        """Return the architectures in the form of --arch."""
        return tuple(map(str, self.archs))

    @property
    def build_type(self) -> str:
        """Return CMake's word for the configuration."""
        return self.configuration.capitalize()

    @property
    def artifact(self) -> Artifact | None:
        """Return the archive of the source, if it is neither a folder nor in git."""
        if self.path or self.url:
            return None
        row = self.row
        return Artifact(
            id=f"{row.name}-source-{row.version}",
            name=row.name,
            version=row.version,
            urls=row.urls,
            sha256=row.sha256,
            unpack="tar.gz",
            because=f"the source of {row.name} {row.version}",
        )


def make_order(question: Question, word: str) -> Order:
    """Return the order of `helpers build WORD` for the planned torch.

    Raises:
        UsageError: there is no such recipe, or no CUDA in the plan.
        PlanRefused: this torch has no use for it, and it was not insisted on.
    """
    name, _, place = word.partition("=")
    row = _row(question, name)
    if not is_cuda(question):
        raise UsageError(f"{name} is built for a version of CUDA.", next_step="Add --cuda.")
    from torchbuild_tasks.plan.cuda.choose import choose_cuda  # a CPU build does without

    because = _profits(question, name)
    cuda = choose_cuda(question)
    path, url, ref = read_place(place) if place else ("", row.url, row.ref)
    debug = choose_build_type(question).value == "Debug" and question.facts.host.os == "windows"
    return Order(
        row=row,
        path=path,
        url=url,
        ref=ref or ("HEAD" if url else ""),
        cuda=str(cuda.toolkit.version or ""),
        archs=cuda.archs.archs,
        configuration="debug" if debug else "release",
        system=f"{question.facts.host.os} {question.facts.host.arch}",
        jobs=choose_jobs(question, "Release", "nvcc").value,
        because=because,
    )


def _row(question: Question, name: str) -> HelperSourceRow:
    rows = question.catalog.helper_source
    system = question.facts.host.os
    names = sorted({row.name for row in rows})
    if name not in names:
        raise UsageError(
            f"There is no recipe that builds {name} from source{did_you_mean(name, names) or '.'}",
            next_step=f"There are recipes for: {', '.join(names)}.",
        )
    recipe = next((row for row in rows if row.name == name and row.os == system), None)
    if recipe is None:
        raise UsageError(f"There is no recipe that builds {name} from source on {system}.")
    return recipe


def _profits(question: Question, name: str) -> str:
    """Return why the planned torch uses the helper; raise PlanRefused if it does not, unless forced."""
    from torchbuild_tasks.plan.cuda.variables import needless

    switch = f"USE_{name.upper()}"
    torch = f"torch {question.read_version}" if question.read_version else "the torch of this checkout"
    choice = decide(question, switch)
    row = needless(question, switch)
    if row is None:
        return f"{torch} still does linear algebra on the GPU with it"
    if choice and not is_off(choice.value):
        return f"{choice.name}={choice.value} asks for it, though {row.because}"
    raise PlanRefused(
        f"{torch} does not need {name}: {row.because}. Nothing was built.",
        next_step=f"To build it anyway: torchbuild helpers build {name} --cuda --set {switch}=1",
    )


# Findings of a torch plan that matter for a helper: not those about torch's Python, submodules and packages,
# nor the missing helper itself.
_COUNTS: Final = (
    *("compiler", "host-compiler", "toolset", "windows-sdk", "cuda-toolkit", "cuda-libc", "architectures"),
    *("arch", "noexec", "trust", "probe", "variable", "env-file"),
)


def accept_compilers(plan: BuildPlan, name: str) -> BuildPlan:
    """Return the plan if its parts for a helper can work: compilers, CUDA, architectures, env file.

    Raises:
        PlanRefused: it cannot.
    """
    errors = tuple(each for each in plan.findings if each.status == "error" and each.id in _COUNTS)
    if errors:
        raise PlanRefused(
            f"{name} is built with the compilers of torch's build, which cannot work. Nothing was written.",
            findings=errors,
        )
    return plan


# ---------------- recipes


def choose_recipe(catalog: Catalog, name: str, cmake: str, place: str) -> RecipeRow:
    """Return the recipe of a source, by the variables in its CMakeLists.txt.

    Raises:
        UsageError: none of the recipes is for it.
    """
    rows = [row for row in catalog.recipe if row.name == name]
    if recipe := next((row for row in rows if row.reads in cmake), None):
        return recipe
    known = " or ".join(row.reads for row in rows)
    raise UsageError(
        f"{place} cannot be built for a list of architectures: its CMakeLists.txt does not read {known}.",
        next_step=f"Take the source that belongs to the recipe: torchbuild helpers build {name}; "
        "or apply upstream's patches of .ci/magma/package_files to yours, which add the second.",
    )


def spell_archs(recipe: RecipeRow, archs: tuple[Arch, ...]) -> str:
    """Return the architectures in a recipe's form: machine code for each, and PTX if requested."""
    words = []
    for arch in archs:
        code = f"{arch.capability.major}{arch.capability.minor}{arch.capability.kind}"
        words.append(recipe.cubin.format(code))
        if arch.ptx:
            words.append(recipe.ptx.format(code))
    return recipe.separator.join(words)


def configure_argv(order: Order, recipe: RecipeRow, source: str, build: str) -> tuple[str, ...]:
    """Return the command that configures a source."""
    options = (option.replace("{archs}", spell_archs(recipe, order.archs)) for option in recipe.options)
    how = ("-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_BUILD_TYPE={order.build_type}")
    return ("cmake", *how, *options)


def build_argv(order: Order, recipe: RecipeRow, build: str) -> tuple[str, ...]:
    """Return the command that compiles the library, without the tests in `all`."""
    return ("cmake", "--build", build, "--target", recipe.target, "--parallel", order.jobs)


def choose_source_patches(catalog: Catalog, order: Order, version: str) -> tuple[Patch, ...]:
    """Return the patches of this version of the source for this CUDA."""
    return tuple(
        Patch(id=row.id, diff=row.text, because=row.because)
        for row in catalog.patch
        if row.of == order.row.name and admits(row.versions, version) and admits(row.cuda, order.cuda)
    )


# ---------------- the archive's name and row


def archive_name(order: Order, version: str) -> str:
    """Return the archive's name, in upstream's form: magma-cuda130-2.9.0-1.tar.bz2."""
    digits = order.cuda.replace(".", "")
    return order.row.archive.format(version=version, cuda=digits, configuration=order.configuration)


def make_note(order: Order, version: str, key: str) -> BuiltFor:
    """Return the note inside of the archive: the target of its build."""
    return BuiltFor(
        helper=order.row.name,
        version=version,
        cuda=order.cuda,
        archs=order.arch_words,
        configuration=order.configuration,
        system=order.system,
        key=key,
    )


def row_text(order: Order, note: BuiltFor, url: str, sha256: str, size: int) -> str:
    """Return the [[helper]] row of torchbuild.toml for the archive."""
    os, _, arch = note.system.partition(" ")
    values: Mapping[str, object] = {
        "name": note.helper,
        "version": note.version,
        "os": os,
        "arch": arch,
        "cuda": note.cuda.replace(".", ""),
        # A static library without the C runtime's debug half links with every torch outside of Windows.
        "configuration": note.configuration if os == "windows" else "",
        "archs": list(note.archs),
        "needed": "cuda",
        "unless": ["MAGMA_HOME", "USE_MAGMA"],
        "urls": [url],
        "sha256": sha256,
        "size": size,
        "unpack": order.row.unpack,
        "holds": list(order.row.holds),
        "because": f"{note.helper} for CUDA {note.cuda} and {' '.join(note.archs)}, built from source",
        "source": f"helpers build, {note.key}",
    }
    lines = (f"{name} = {toml_value(value)}" for name, value in values.items() if value)
    return "\n".join(("[[helper]]", *lines, 'set = { MAGMA_HOME = "{folder}" }')) + "\n"
