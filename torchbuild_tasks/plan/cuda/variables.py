"""The variables of a CUDA build: the toolkit's folders, nvcc, cuDNN, NCCL, and what is switched off.

Names that the era does not read are left out (`rows.variable_row`); what the user has decided stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from torchbuild_tasks.catalog.cuda import CudaOffRow, CudnnRow
from torchbuild_tasks.catalog.match import admits, variable_row
from torchbuild_tasks.model import Choice, EnvOp, Finding, Library
from torchbuild_tasks.model.cuda import BuiltFor, names_of
from torchbuild_tasks.plan.cuda.archs import read_archs, runs_on
from torchbuild_tasks.plan.cuda.toolkit import FOLDER, NVCC_NAMES, named_nvcc, series_of, torch_rows
from torchbuild_tasks.plan.cuda.values import ChosenArchs, ChosenToolkit
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_helper, is_off
from torchbuild_tasks.text.paths import is_inside, plain_path

# From this many architectures on the fat binaries are compressed, as in upstream's own builds
# (TORCH_NVCC_FLAGS of .ci/manywheel/build_cuda.sh): libtorch_cuda stays below the linker's limits.
COMPRESS_FROM = 4
COMPRESS = "-Xfatbin -compress-all"


def toolkit_variables(question: Question, chosen: ChosenToolkit) -> tuple[Choice, ...]:
    """Return the variables that name the toolkit to CMake, to PyTorch's own modules and to its extensions.

    These replace what the environment says, so that all of them name the same folder.
    """
    root = chosen.root
    if not root or chosen.choice is None:
        return ()
    because, source = f"{chosen.name}, the toolkit of this build", chosen.choice.source
    values = {"CUDA_HOME": root, "CUDA_PATH": root, FOLDER: root}
    other = [named.name for named, toolkit in named_nvcc(question) if toolkit.path != root]
    if other or not any(decide(question, name) for name in NVCC_NAMES):
        values |= dict.fromkeys(("CUDACXX", *other), nvcc_of(question, chosen))
    return tuple(Choice(name=n, value=v, because=because, source=source) for n, v in values.items())


def toolkit_path(question: Question, chosen: ChosenToolkit) -> tuple[EnvOp, ...]:
    """Return nvcc's folder for the front of PATH: old CMake modules look for the first nvcc there.

    On Windows the DLLs of 13.x are in a folder below it, and in NVIDIA's wheels in another one
    (.ci/pytorch/windows/internal/copy.bat: bin\\x64 from CUDA 13.0 on).
    """
    if not chosen.root:
        return ()
    folder = nvcc_of(question, chosen).rpartition(question.separator)[0]
    folders = [folder]
    if chosen.managed and question.facts.host.os == "windows":
        folders.insert(0, rf"{folder}\x86_64")
    elif question.facts.host.os == "windows" and chosen.version and chosen.version.major >= 13:
        folders.insert(0, rf"{folder}\x64")
    because = f"nvcc of {chosen.name}"
    return tuple(EnvOp(op="prepend", name="PATH", value=each, because=because) for each in folders)


def nvcc_of(question: Question, chosen: ChosenToolkit) -> str:
    """Return the nvcc that compiles; one of a toolkit that is still to be made stands in its bin."""
    if chosen.toolkit and chosen.toolkit.nvcc:
        return chosen.toolkit.nvcc
    name = "nvcc.exe" if question.facts.host.os == "windows" else "nvcc"
    return question.separator.join((chosen.root, "bin", name))


def library_variables(question: Question, chosen: ChosenToolkit, archs: ChosenArchs) -> tuple[Choice, ...]:
    """Return cuDNN, NCCL, MAGMA and nvcc's flags, where no other layer has decided them."""
    if chosen.choice is None:
        return ()
    found = [*_flags(question, chosen, archs)]
    if not question.facts.tree.sample:
        found += [*_cudnn(question, chosen), *_nccl(chosen), *_magma(question, chosen, archs)]
    return tuple(choice for choice in found if _is_open(question, choice.name))


def cudnn_version(question: Question, chosen: ChosenToolkit) -> str | None:
    """Return the cuDNN that the build would use, if one was found."""
    if not is_named(question, "cudnn"):
        if chosen.toolkit and chosen.toolkit.cudnn:
            return chosen.toolkit.cudnn
        if made := next((each for each in chosen.artifacts if each.name == "cudnn"), None):
            return made.version
    library = _library(question, "cudnn")
    return library.version if library else None


def cudnn_row(question: Question, version: str | None) -> CudnnRow | None:
    """Return the row of a version of cuDNN."""
    return next((row for row in question.catalog.cudnn if version and admits(row.cudnn, version)), None)


def cudnn_misfit(question: Question, chosen: ChosenToolkit) -> str:
    """Say why torch would not build or start with the cuDNN that is here; "" where nothing says so."""
    version = cudnn_version(question, chosen)
    for row in torch_rows(question) if version else ():
        if row.cudnn and not admits(row.cudnn, version):
            return f"torch {question.row.version} is made for cuDNN {row.cudnn}, and {version} was found"
    made = cudnn_row(question, version)
    if made and chosen.version and not admits(made.cuda, chosen.version):
        return f"cuDNN {version} is for CUDA {made.cuda}, and the toolkit is {chosen.version}"
    return "" if _has_part(chosen, "cudnn") else _in_other_toolkit(question, chosen)


def _in_other_toolkit(question: Question, chosen: ChosenToolkit) -> str:
    """Say that the cuDNN that is here lies in a toolkit of another major, for which it was made."""
    library = _library(question, "cudnn")
    folder = library.library or "" if library else ""
    for other in question.cuda.toolkits:
        version = series_of(other.version)
        inside = plain_path(other.path) != "/usr" and is_inside(folder, other.path)
        if inside and version and chosen.version and version.major != chosen.version.major:
            text = f"the cuDNN that was found is that of {other.name} ({other.path})"
            return f"{text}, and the toolkit is {chosen.version}"
    return ""


def is_named(question: Question, library: str) -> bool:
    """Say whether any layer names the folder of a library."""
    return any((choice := decide(question, name)) and choice.value for name in names_of(library))


def has_library(question: Question, chosen: ChosenToolkit, name: str) -> bool:
    """Say whether there is such a library (cudnn) for this build, in the toolkit or outside of it."""
    return _has_part(chosen, name) or _library(question, name) is not None


def _is_open(question: Question, name: str) -> bool:
    read = variable_row(question.catalog, name, question.era, question.version)
    return read is not None and not read.refused and decide(question, name) is None


def _flags(question: Question, chosen: ChosenToolkit, archs: ChosenArchs) -> Iterator[Choice]:
    if question.value("mode", "develop") == "wheel" and chosen.version:
        rows = (row for row in question.catalog.compress if admits(row.cuda, str(chosen.version)))
        for row in rows:
            yield Choice(name="TORCH_NVCC_FLAGS", value=row.flags, because=row.because)
            return
    if len(archs.archs) >= COMPRESS_FROM:
        because = f"{len(archs.archs)} architectures: the fat binaries are compressed"
        yield Choice(name="TORCH_NVCC_FLAGS", value=COMPRESS, because=because)


def _cudnn(question: Question, chosen: ChosenToolkit) -> Iterator[Choice]:
    if misfit := cudnn_misfit(question, chosen):
        yield Choice(name="USE_CUDNN", value="0", because=misfit)
        return
    if _has_part(chosen, "cudnn"):
        because = "cuDNN is in the toolkit's folder"
        yield Choice(name="CUDNN_ROOT", value=chosen.root, because=because)
        return
    library = _library(question, "cudnn")
    if library is None:
        because = "no cuDNN was found, in the toolkit or elsewhere"
        yield Choice(name="USE_CUDNN", value="0", because=because)
        return
    because = f"cuDNN {library.version or ''}, found via {library.found_via}".replace(" ,", ",")
    if library.include:
        yield Choice(name="CUDNN_INCLUDE_DIR", value=library.include, because=because)
    if library.library:
        yield Choice(name="CUDNN_LIBRARY", value=library.library, because=because)


def _nccl(chosen: ChosenToolkit) -> Iterator[Choice]:
    """Use the toolkit's own NCCL, which is of the version that this torch wants; else PyTorch's copy."""
    if chosen.managed is None or not _has_part(chosen, "nccl"):
        return
    because = "the NCCL that upstream's binaries of this torch have; nothing has to be compiled"
    yield Choice(name="USE_SYSTEM_NCCL", value="1", because=because)
    yield Choice(name="NCCL_ROOT", value=chosen.root, because=because)


def why_unfit(question: Question, wanted: ChosenArchs, cuda: Version | None, built: BuiltFor) -> str:
    """Say why a library that was built for something does not serve this build; "" when it does.

    A toolkit links what an older one of its major has compiled, not the other way round.
    """
    name = f"{built.helper} {built.version}".strip()
    made = Version(built.cuda) if built.cuda else cuda
    if cuda and made and (made.major != cuda.major or made > cuda):
        return f"{name} was built for CUDA {made}, which does not link with CUDA {cuda}"
    have = read_archs(question, ";".join(built.archs)) if built.archs else ()
    lacking = [
        arch.capability for arch in wanted.archs if have and not runs_on(question, have, arch.capability)
    ]
    if lacking:
        return f"{name} holds code for {' '.join(built.archs)}, and none that runs on {lacking[0]}"
    return ""


def magma_misfit(question: Question, chosen: ChosenToolkit, archs: ChosenArchs) -> str:
    """Say why the MAGMA that was found is not one for this build; "" where nothing says so."""
    library = _library(question, "magma")
    if library is None or library.built_for is None:
        return ""
    return why_unfit(question, archs, chosen.version, library.built_for)


def check_magma(question: Question, chosen: ChosenToolkit, archs: ChosenArchs) -> tuple[Finding, ...]:
    """Refuse a MAGMA that the user asks for and that was built for something else."""
    asked = is_named(question, "magma") or not is_off(getattr(decide(question, "USE_MAGMA"), "value", "0"))
    misfit = magma_misfit(question, chosen, archs) if asked and not is_helper(question, "magma") else ""
    if not misfit or question.facts.tree.sample:
        return ()
    fix = "Do without it: --set USE_MAGMA=0. Or make one for this build: torchbuild helpers build magma"
    return (Finding.error("magma", f"{misfit} (MAGMA_HOME)", fix),)


def _magma(question: Question, chosen: ChosenToolkit, archs: ChosenArchs) -> Iterator[Choice]:
    """Use the MAGMA that was found, where no helper row provides one."""
    if row := needless(question, "USE_MAGMA"):
        yield Choice(name="USE_MAGMA", value="0", because=row.because)
        return
    if is_helper(question, "magma"):
        return
    library = _library(question, "magma")
    if misfit := magma_misfit(question, chosen, archs):
        yield Choice(name="USE_MAGMA", value="0", because=misfit)
        return
    if library is not None and library.include:
        home = library.include.rpartition("/")[0]
        because = f"MAGMA {library.version or ''}".rstrip() + f", found via {library.found_via}"
        yield Choice(name="MAGMA_HOME", value=home, because=because)
        return
    because = (
        "no MAGMA was found (MAGMA_HOME, /usr/local/magma, conda); linear algebra is cuSOLVER's. To have it: "
        "torchbuild helpers build magma --cuda, or for CUDA up to 12.6 conda's magma-cudaXYZ of -c pytorch"
    )
    yield Choice(name="USE_MAGMA", value="0", because=because)


def needless(question: Question, name: str) -> CudaOffRow | None:
    """Return the row by which a switch is off for this torch by default, if any."""
    if is_named(question, name.removeprefix("USE_").lower()):
        return None
    rows = (row for row in question.catalog.cuda_off if row.variable == name)
    return next((row for row in rows if question.version and admits(row.torch, question.version)), None)


def _has_part(chosen: ChosenToolkit, name: str) -> bool:
    """Say whether the toolkit has a library in its own folder, or will have."""
    if chosen.toolkit is not None:
        return bool(getattr(chosen.toolkit, name, None)) or name in chosen.toolkit.parts
    return any(artifact.name == name for artifact in chosen.artifacts)


def _library(question: Question, name: str) -> Library | None:
    found = question.cuda.libraries
    complete = (library for library in found if library.name == name and library.include and library.library)
    return next(complete, None)
