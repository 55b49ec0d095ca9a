"""Decide the container of a build: its image, the plan in it, its mounts and variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.catalog.match import admits, parse_version, series
from torchbuild_tasks.catalog.packaging import BaseRow, EngineRow
from torchbuild_tasks.errors import ContainerError, PlanRefused, UsageError
from torchbuild_tasks.model import (
    BuildPlan,
    Choice,
    Cuda,
    Facts,
    Finding,
    Python,
    Store,
    Tool,
    Toolkit,
)
from torchbuild_tasks.plan.artifacts import in_store
from torchbuild_tasks.plan.cuda.toolkit import torch_rows
from torchbuild_tasks.plan.fit import check_writable
from torchbuild_tasks.plan.jetson import board, jetpack
from torchbuild_tasks.plan.packages import package_name
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.values import replace

WORKSPACE: Final = "/workspace"
USER: Final = "builder"
CACHE: Final = f"/home/{USER}/.cache"
CERTIFICATES: Final = "/etc/torchbuild-certificates.pem"
_TOOLKIT: Final = "/usr/local/cuda"
_PARTS: Final = ("cublas", "cufft", "cupti", "curand", "cusolver", "cusparse", "nvrtc")
_BESIDE: Final = ("ca-certificates", "gdb")
# Characters that separate mount options, which not every engine can escape.
_ODD: Final = re.compile(r'[,:"\\\x00-\x1f\x7f]')
_NOT_CARRIED: Final = (
    *("source", "python", "cuda_toolkit", "config", "cache_dir", "patch_dir", "wheels", "facts"),
)
# Flags that mean the same inside; all others name places of this machine, or are not for builds.
CARRIED: Final = ("cpu", "cuda", "arch", "preset", "build_type", "mode", "set", "linker", "jobs", "jobserver")


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A container engine: why it cannot be used, and whether its user has subordinate ids."""

    row: EngineRow
    path: str = ""
    rootless: bool = False
    problem: str = ""
    subids: bool = True


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A mount: a folder or file of the machine, or a permanent volume."""

    source: str
    target: str
    volume: bool = False
    read_only: bool = False


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the machine for the container: ids of the user (None on Windows), files, variables.

    `common` is the folder of git that a worktree belongs to, `pip` pip's own settings.
    """

    uid: int | None = None
    gid: int | None = None
    certificates: str = ""
    pip: str = ""
    proxies: tuple[str, ...] = ()
    common: str = ""
    cdi: bool = False


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions: the image with reasons, the packages in it, and how it is run."""

    base: str
    choices: tuple[Choice, ...]
    packages: tuple[str, ...]
    python: str
    command: tuple[str, ...]
    mounts: tuple[Mount, ...]
    environ: Mapping[str, str]
    passed: tuple[str, ...]
    memory: int
    gpu: bool
    tegra: bool
    engine: EngineRow
    rootless: bool
    uid: int
    gid: int
    notes: tuple[str, ...] = ()

    @property
    def run_as_root(self) -> bool:
        """Say whether root runs it, also on the machine."""
        return self.uid == 0


# ---------------- the engine


def choose_engine(engines: Sequence[Engine], wanted: str | None) -> Engine:
    """Return the named engine, else the first that works.

    Raises:
        ContainerError: there is none, it does not answer, or its user has no ids to give away.
    """
    named = [each for each in engines if wanted in (None, each.row.name)]
    fitting = [each for each in named if each.path and not each.problem]
    if not fitting:
        what = (
            f"{wanted} cannot be used here." if wanted else "There is no program here that runs containers."
        )
        raise ContainerError(
            what,
            looked=tuple(f"{each.row.name}: {each.problem or 'is in no folder of PATH'}" for each in named),
            next_step="Install podman: apt, dnf, zypper, pacman and apk call it podman, winget "
            "RedHat.Podman. The files can be written without one: container write",
        )
    engine = fitting[0]
    if engine.rootless and engine.row.subids and not engine.subids:
        raise ContainerError(
            f"{engine.row.name} runs without root here, and this user has no ids to give to a container.",
            looked=("/etc/subuid and /etc/subgid have no line for this user",),
            next_step='sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$USER"\n'
            "podman system migrate",
        )
    return engine


# ---------------- the image


def fitting_bases(question: Question, image: str | None = None) -> tuple[BaseRow, ...]:
    """Return the images that fit a build, the best first.

    Args:
        question: what is built, and on which machine.
        image: one that was named; its own row comes first.

    Raises:
        ContainerError: no row is for this machine, or --cuda-toolkit names what no image has.
    """
    host = question.facts.host
    wanted = _needed_cuda(question)
    rows = [
        row
        for row in question.catalog.base
        if host.arch in row.archs and bool(row.cuda) == (wanted is not None) and _fits_board(question, row)
    ]
    fitting = [row for row in rows if not wanted or wanted in (series(row.cuda), row.cuda)]
    if not fitting:
        have = ", ".join(dict.fromkeys(series(row.cuda) for row in rows if row.cuda))
        tegra = question.cuda.tegra
        where = f"a Jetson with L4T {tegra.l4t}" if tegra else f"{host.arch}"
        raise ContainerError(
            f"No image is known for CUDA {wanted or 'of any version'} on {where}.",
            looked=(f"data/container.toml has: {have}",) if have else (),
            next_step="Build on the board itself (docs/jetson.md)."
            if tegra and not have
            else "--cuda-toolkit VERSION names another, pypi:VERSION one of NVIDIA's wheels.",
        )
    return tuple(sorted(fitting, key=_order(question, image)))


def _needed_cuda(question: Question) -> str | None:
    """Return the CUDA that the image must have: a version, "" for any; None for none."""
    if not is_cuda(question):
        return None
    toolkit = question.value("cuda_toolkit", "")
    if toolkit.startswith("pypi:"):
        return None
    if toolkit and not re.fullmatch(r"\d+(\.\d+){1,2}", toolkit):
        raise ContainerError(
            f"--cuda-toolkit {toolkit} is a folder of this machine; the image has its own toolkit.",
            next_step="Name a version: --cuda-toolkit 12.6",
        )
    return toolkit


def _fits_board(question: Question, row: BaseRow) -> bool:
    """Say whether the image is for this machine: a Jetson before Thor needs one for its L4T."""
    known = board(question)
    tegra = question.cuda.tegra
    if tegra is not None and not (known and known.sbsa) and is_cuda(question):
        return bool(row.l4t and admits(row.l4t, tegra.l4t))
    return not row.l4t


def _order(question: Question, image: str | None) -> Callable[[BaseRow], tuple[bool, ...]]:
    """Return the sort key for images: the named one, CUDA of the driver, the best CUDA, this system."""
    best = next((row.best for row in torch_rows(question) if row.best), "") if is_cuda(question) else ""
    if pack := jetpack(question):
        best = pack.cuda  # a Jetson's driver is part of its JetPack
    driver = question.cuda.driver.cuda if question.cuda.driver else None
    here = question.facts.host.distribution or ""

    def place(row: BaseRow) -> tuple[bool, ...]:
        return (
            row.image.rpartition("/")[2] != (image or "").rpartition("/")[2],
            bool(driver and row.cuda and _newer(series(row.cuda), driver)),
            series(row.cuda) != best,
            not here.startswith(row.system),
        )

    return place


def _newer(one: str, other: str) -> bool:
    first = parse_version(one)
    second = parse_version(other)
    return first is not None and second is not None and first > second


def facts_inside(question: Question, row: BaseRow, memory: int) -> Facts:
    """Return the facts as `doctor` would find them in a container of this image."""
    facts = question.facts
    tree = facts.tree
    return replace(
        facts,
        host=replace(facts.host, os="linux", distribution=row.system, libc=f"glibc {row.libc}"),
        memory=replace(
            facts.memory,
            limit=memory or facts.memory.limit,
            used_in_limit=0,
            limit_via="the container's memory limit",
        ),
        compilers=tuple(_tool(name, row.gcc) for name in ("g++", "gcc")),
        tools=tuple(_tool(name, None) for name in ("git", "ld", "ccache")),
        pythons=(_python(row),),
        tree=replace(
            tree,
            root=WORKSPACE,
            build_dir=tree.build_dir and f"{WORKSPACE}/build",
            cache=None,
            previous=None,
            installed=None,
            running=None,
        ),
        store=Store(folder=f"{CACHE}/torchbuild-tasks"),
        windows=None,
        blas=None,
        linked=None,
        environ={},
        cuda=_cuda(question, row),
        patches=(),
        companions=(),
    )


def _tool(name: str, version: str | None) -> Tool:
    return Tool(name=name, path=f"/usr/bin/{name}", version=version, found_via="the image")


def _python(row: BaseRow) -> Python:
    number = series(row.python)
    return Python(
        executable=f"/usr/bin/python{number}",
        found_via="the image",
        version=row.python,
        implementation="CPython",
        bits=64,
        environment="base",
        externally_managed=True,
        prefix="/usr",
        include=f"/usr/include/python{number}",
        headers=True,
        venv=True,
    )


def _cuda(question: Question, row: BaseRow) -> Cuda | None:
    """Return the CUDA of the image, with the GPUs and the driver of the machine."""
    seen = question.cuda
    if not row.cuda:
        return replace(seen, toolkits=(), libraries=())
    release = next((each for each in question.catalog.cuda if each.version == series(row.cuda)), None)
    toolkit = Toolkit(
        path=_TOOLKIT,
        found_via="the image",
        version=row.cuda,
        nvcc=f"{_TOOLKIT}/bin/nvcc",
        nvcc_version=row.cuda,
        headers=True,
        libraries=f"{_TOOLKIT}/lib64",
        archs=release.archs if release else (),
        gcc=release.gcc if release else None,
        cudnn=row.cudnn or None,
        nccl=None if row.l4t else "2",
        cuobjdump=f"{_TOOLKIT}/bin/cuobjdump",
        parts=dict.fromkeys(_PARTS, f"{_TOOLKIT}/lib64"),
    )
    return replace(seen, toolkits=(toolkit,), libraries=())


def question_inside(question: Question, row: BaseRow, memory: int) -> Question:
    """Return the question for a container of this image."""
    request = replace(question.request, offline=False, **dict.fromkeys(_NOT_CARRIED))
    values = {name: value for name, value in question.settings.values.items() if name != "offline"}
    toolkit = question.value("cuda_toolkit", "")
    if toolkit.startswith("pypi:"):
        request = replace(request, cuda_toolkit=toolkit)
    settings = replace(question.settings, values=values)  # --offline is about the image
    return replace(question, request=request, settings=settings, facts=facts_inside(question, row, memory))


def choose_base(
    question: Question, image: str | None, memory: int, decide: Callable[[Question], BuildPlan]
) -> tuple[BaseRow, BuildPlan]:
    """Return the first image in which the build can work, and its plan.

    Raises:
        PlanRefused: there is none; the findings are those of the image that is nearest, or of a checkout
            that no container can write to, either.
    """
    if shut := tuple(check_writable(question)):
        raise PlanRefused("This build cannot work in any container. Nothing was written.", findings=shut)
    first: BuildPlan | None = None
    name = ""
    for row in fitting_bases(question, image):
        plan = decide(question_inside(question, row, memory))
        if plan.verdict != "refuse":
            return row, plan
        if first is None or len(_errors(plan)) < len(_errors(first)):
            first = plan
            name = row.image
    assert first is not None
    raise PlanRefused(
        f"This build cannot work in any image that is known here, such as {name}. Nothing was written.",
        findings=_errors(first),
        next_step="Use another with container --base IMAGE; its contents are not checked before it runs.",
    )


def _errors(plan: BuildPlan) -> tuple[Finding, ...]:
    return tuple(finding for finding in plan.findings if finding.status == "error")


_REGISTRY: Final = re.compile(r"[A-Za-z0-9\[][\w.\-:\[\]]*(?:/[\w.\-]+)*/?")


_IMAGE: Final = re.compile(_REGISTRY.pattern + r"(?::[\w.\-]+)?(?:@\w+:[0-9A-Fa-f]+)?")


def read_image(image: str) -> None:
    """Refuse a value of --base that can be no image.

    Raises:
        UsageError: it is none.
    """
    if not _IMAGE.fullmatch(image):
        raise UsageError(
            f"--base {image!r} is no image: REGISTRY/NAME, NAME:TAG or NAME@DIGEST.",
            next_step="Write for example: --base docker.io/library/debian:bookworm",
        )


def read_registries(mirrors: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the registries of OLD=NEW, and "" for that of NEW alone, which stands for every one.

    Raises:
        UsageError: an entry is no registry; one with a scheme is accepted by no engine.
    """
    pairs = []
    for entry in mirrors:
        old, equals, new = entry.rpartition("=")
        wrong = [part for part in ([old, new] if equals else [new]) if not _REGISTRY.fullmatch(part)]
        if wrong:
            scheme = "://" in wrong[0]
            why = "a registry has no scheme" if scheme else f"{wrong[0]!r} is no HOST, HOST:PORT or HOST/PATH"
            raise UsageError(
                f"--registry {entry}: {why}.",
                next_step="Write for example: --registry docker.io=mirror.example.org/hub",
            )
        pairs.append((old, new))
    return tuple(pairs)


def find_mirror(image: str, mirrors: Sequence[str]) -> str:
    """Return the registry of an image through mirrors: OLD=NEW for one registry, NEW alone for all.

    Raises:
        UsageError: an entry is no registry.
    """
    for old, new in read_registries(mirrors):
        registry, _, rest = image.partition("/")
        if old in ("", registry):
            return f"{new.rstrip('/')}/{rest}"
        if image.startswith(f"{old.rstrip('/')}/"):
            return new.rstrip("/") + image[len(old.rstrip("/")) :]
    return image


# ---------------- memory, mounts, variables


def choose_memory(facts: Facts, size: int, engine: EngineRow) -> Choice:
    """Decide the memory of a container in bytes: an eighth of the machine, at least a GiB, is kept free.

    A build that takes more is then ended in it, instead of the desktop; its job count is made for this.

    Raises:
        ContainerError: a limit is named, and the engine cannot keep it.
    """
    if not engine.limits:
        if size:
            raise ContainerError(
                f"{engine.name} runs without cgroups here, so it cannot limit the memory.",
                next_step="Use --jobs N instead of --memory, or --engine podman.",
            )
        return Choice(name="memory", value="0", because=f"{engine.name} keeps no limit; --jobs N uses less")
    if size:
        return Choice(name="memory", value=str(size), because="--memory on the command line", source="flag")
    total = min(filter(None, (facts.memory.total, facts.memory.limit)), default=0)
    if not total:
        return Choice(name="memory", value="0", because="the memory of this machine is not known: no limit")
    mebibytes = max(total // 2, total - max(GIB, total // 8)) >> 20
    return Choice(
        name="memory",
        value=str(mebibytes << 20),
        because=f"seven eighths of this machine's {size_text(total)}; the number of jobs follows it",
    )


def check_path(path: str) -> None:
    """Refuse a path with characters that mount options do not allow.

    Raises:
        ContainerError: it has a comma, a colon, a quote or a control character.
    """
    if odd := _ODD.search(path if not re.match(r"[A-Za-z]:[\\/]", path) else path[3:].replace("\\", "/")):
        raise ContainerError(
            f"{path} has {odd[0]!r} in its name, which cannot be written in a list of mounts.",
            next_step="Move the checkout, or name it by a link without such a character.",
        )


def choose_mounts(source: str, host: Host, uid: int, cache: str = "") -> tuple[Mount, ...]:
    """Return the mounts: the checkout, a worktree's git folder, the caches, the package settings.

    `cache` is the folder of the caches where the engine has no volumes.
    """
    mounts = [Mount(source=source, target=WORKSPACE)]
    if host.common:
        mounts.append(Mount(source=host.common, target=host.common))
    mounts.append(Mount(source=cache or f"torchbuild-cache-{uid}", target=CACHE, volume=not cache))
    if host.certificates:
        mounts.append(Mount(source=host.certificates, target=CERTIFICATES, read_only=True))
    if host.pip:
        mounts.append(Mount(source=host.pip, target="/etc/pip.conf", read_only=True))
    for mount in mounts:
        check_path(mount.source)
    return tuple(mounts)


def choose_environ(host: Host) -> dict[str, str]:
    """Return the variables of a container; those of a build are in its env file."""
    names = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
    return dict.fromkeys(names, CERTIFICATES) if host.certificates else {}


def words_of(question: Question) -> Iterator[str]:
    """Yield the flags of the request for the build inside."""
    request = question.request
    for name in CARRIED:
        value = getattr(request, name)
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            yield flag
        elif value not in (None, False, ()):
            for each in value if isinstance(value, tuple) else (value,):
                yield from (flag, str(each))
    if (toolkit := question.value("cuda_toolkit", "")).startswith("pypi:"):
        yield from ("--cuda-toolkit", toolkit)


def choose_packages(question: Question, row: BaseRow) -> tuple[str, ...]:
    """Return the packages for apt: Python, those of `bootstrap`, a debugger, certificates."""
    wants = (w for w in question.catalog.want if w.os in ("", "linux") and w.tools)
    named = (package_name(question.catalog, "apt", want.package) for want in wants)
    return tuple(sorted({*row.install, *filter(None, named), *_BESIDE}))


def make_container(
    question: Question,
    engine: Engine,
    host: Host,
    decide: Callable[[Question], BuildPlan],
    *,
    image: str | None = None,
    registry: Sequence[str] = (),
    memory: int = 0,
) -> tuple[Container, BuildPlan]:
    """Decide everything about the container of a build.

    Args:
        question: the build, with the facts of this machine.
        engine: what builds and runs it.
        host: the facts of the machine.
        decide: makes the plan of a question.
        image: the one that was named (--base).
        memory: bytes that were named, 0 for none.
    """
    limit = choose_memory(question.facts, memory, engine.row)
    row, plan = choose_base(question, image, int(limit.value), decide)
    base = find_mirror(image or row.image, registry)
    uid = 1000 if host.uid is None else host.uid
    tegra = question.cuda.tegra is not None
    folder = "" if engine.row.volumes else in_store(question, "container-cache")
    has_gpu = is_cuda(question) and bool(question.cuda.gpus or tegra)
    gpu = has_gpu and bool(engine.row.gpu) and (host.cdi or not engine.row.cdi)
    container = Container(
        base=base,
        choices=(_base_choice(row, base, image), limit, _gpu_choice(engine, has_gpu, gpu)),
        packages=choose_packages(question, row),
        python=f"python{series(row.python)}",
        command=("torchbuild", "build", *words_of(question)),
        mounts=choose_mounts(question.facts.tree.root, host, uid, folder),
        environ=choose_environ(host),
        passed=host.proxies,
        memory=int(limit.value),
        gpu=gpu,
        tegra=tegra,
        engine=engine.row,
        rootless=engine.rootless,
        uid=uid,
        gid=1000 if host.gid is None else host.gid,
        notes=_notes(question, row, image, base),
    )
    return container, plan


def _base_choice(row: BaseRow, base: str, image: str | None) -> Choice:
    if image:
        return Choice(name="base", value=base, because="--base on the command line", source="flag")
    cuda = f", CUDA {row.cuda}, cuDNN {row.cudnn}" if row.cuda else ""
    return Choice(name="base", value=base, because=f"{row.system}, GCC {row.gcc}, Python {row.python}{cuda}")


def _gpu_choice(engine: Engine, has_gpu: bool, gpu: bool) -> Choice:
    if gpu:
        words = " ".join(engine.row.gpu)
        return Choice(name="GPUs", value="all", because=f"{engine.row.name} {words}")
    why = "no CUDA is built, or there is no GPU here"
    if has_gpu and not engine.row.gpu:
        why = f"{engine.row.name} gives a container none"
    elif has_gpu:
        why = "there is no specification of them: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    return Choice(name="GPUs", value="none", because=why)


def _notes(question: Question, row: BaseRow, image: str | None, base: str) -> tuple[str, ...]:
    notes = []
    if image and image.rpartition("/")[2] != row.image.rpartition("/")[2]:
        notes.append(f"What {base} holds is not known: the plan is made as for {row.image}, with apt.")
    path = question.settings.path
    if path and PurePath(path).is_absolute() and not path.startswith(question.facts.tree.root):
        notes.append(f"A build inside does not read {path}, which is not in the checkout.")
    if question.facts.environ:
        names = ", ".join(sorted(question.facts.environ))
        notes.append(f"Not given to the container, because they are of this machine: {names} (--set does).")
    return tuple(notes)
