"""Advice to set or unset something is followed: it parses, and the finding is gone or another one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import settings as bounds
from hypothesis import strategies as st

from tests.plan.test_names import READS
from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.examples import examples
from tests.support.for_each import each_case
from tests.support.machines import linux_facts, modern_tree, plan_of, settings, tool, tree
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.fronts.parsing import parse
from torchbuild_tasks.model import BuildPlan, Cuda, Disk, Facts, Finding, GpuSeen, Host, Memory
from torchbuild_tasks.plan.cuda.devices import VISIBLE
from torchbuild_tasks.values import replace

ODD = (
    *("USE_CUDDA=1", "USE_MKLDN=0", "NO_CUDA=1", "USE_GPU=1", "BUILD_TYPE=Debug", "USE_FOOBAR=1"),
    *("USE_KINETO=maybe", "USE_CUDA=OFF", "USE_CUDA=1", "USE_NCCL=1", "USE_FLASH_ATTENTION=1", "USE_MPI=1"),
    *("CMAKE_BUILD_TYPE=Foo", "CMAKE_CXX_STANDARD=11", "CMAKE_GENERATOR=Ninjaa", "BLAS=openblas", "BLAS=MKL"),
    *("PYTORCH_BUILD_VERSION=2.9", "PYTORCH_BUILD_NUMBER=0", "PYTORCH_BUILD_VERSION=my build", "DEBUG=1"),
    *("CMAKE_INSTALL_PREFIX=/opt/t", "CMAKE_CUDA_ARCHITECTURES=86", "USE_NIGHTLY=1", "CMAKE_FRESH=1"),
    *(
        "MAX_JOBS=0",
        "MAX_JOBS=64",
        "CXX=icpc",
        "CC=/opt/none/gcc",
        "CUDAHOSTCXX=g++-99",
        "LDFLAGS=-fuse-ld=gold",
    ),
    *(
        "TORCH_CUDA_ARCH_LIST=8.0",
        "TORCH_CUDA_ARCH_LIST=8,6x",
        "TORCH_CUDA_ARCH_LIST=3.5",
        "CUDA_HOME=/opt/none",
    ),
    *(
        "CUDNN_ROOT=/opt/none",
        "USE_CUDNN=1",
        "CMAKE_ARGS=-DUSE_CUDA=OFF -DUSE_KINETO=0",
        "CUDAFLAGS=-ccbin g++-99",
    ),
    *("USE_CUSPARSELT=1", "USE_UCC=1", "CXXFLAGS=-std=c++11", "LDFLAGS=-static", "USE_FAKELOWP=1"),
    *("CMAKE_CXX_COMPILER=/opt/none/g++", "CMAKE_CXX_COMPILER_LAUNCHER=sccache", "USE_NNAPI=1"),
    *("CMAKE_CXX_FLAGS_RELEASE=-O0", "USE_DISTRIBUTED=0", "USE_TENSORPIPE=1", "USE_GLOO=1", "USE_ROCM=1"),
    *("CUDACXX=/usr/local/cuda-12.4/bin/nvcc", "CUDACXX=/opt/none/nvcc", "USE_CUDA=0"),
)
FLAGS: tuple[dict[str, Any], ...] = (
    *({}, {"cpu": True}, {"cuda": True}, {"cuda": True, "arch": "12.0"}, {"cuda": True, "arch": "5.0"}),
    *({"cuda": True, "cuda_toolkit": "12.9"}, {"cuda": True, "cuda_toolkit": "pypi:13.1"}),
    *({"linker": "mold"}, {"jobs": 64}, {"python": "3.6"}, {"preset": "jetson"}),
    *({"cuda_toolkit": "12.6"}, {"arch": "8.6"}, {"toolset": "14.38"}, {"cuda": True, "arch": "sm_86"}),
)
LAYERS = ("set", "environ", "file")
# A setting is advice when it is whole: PATH, FOLDER, N and … stand for what only the reader knows.
SAID = re.compile(r"(--[a-z][a-z-]*)(?:[ =](\"[^\"]+\"|'[^']+'|[^\s),.;?]+(?:[.;,][^\s),.;?]+)*))?")
DROPPED = re.compile(r"(?:[Dd]rop|[Uu]nset) ((?:[A-Z][A-Z_0-9a-z]+)(?: or [A-Z_0-9]+)?)")
MEANT = re.compile(r"Did you mean ([A-Z][A-Z_0-9]+)\?")
OLD = re.compile(r"([A-Za-z]\w+) is ")
OPEN = re.compile(r"…|^(PATH|FOLDER|N|VERSION|TYPE|NAME)$|=(FOLDER|PATH)$")
# Where another finding is quoted in it, or what is to be left out.
# So does what names a Python that is installed first, which test_make_advice_machine follows.
QUOTED = re.compile(
    r"--[a-z-]+ on the command line| in place of --cpu|python install \S+, and name it: --python \S+"
)
# Not a setting of the build in question: what asks for a yes, a device, or another verb.
OTHER = (
    "--yes",
    "--user",
    "--override",
    "--passive",
    "--add",
    "--version",
    "--recursive",
    "--global",
    "--init",
)
WHOLE = ("--cuda", "--cpu")


class Case(msgspec.Struct, frozen=True):
    """A machine, what its user has set in which layer, and the flags."""

    facts: Facts
    set: tuple[str, ...] = ()
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    file: Mapping[str, str] = msgspec.field(default_factory=dict)
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def plan(self) -> BuildPlan:
        facts = replace(self.facts, environ=self.environ)
        return plan_of(facts, settings(variables=self.file), set=self.set, **self.flags)

    def without(self, name: str) -> Case:
        kept = tuple(word for word in self.set if word.partition("=")[0] != name)
        environ, file = ({k: v for k, v in m.items() if k != name} for m in (self.environ, self.file))
        facts = self.facts
        if name == VISIBLE and facts.cuda:
            facts = replace(facts, cuda=replace(facts.cuda, visible=None))
        return msgspec.structs.replace(self, facts=facts, set=kept, environ=environ, file=file)

    def renamed(self, old: str, new: str) -> Case:
        def other(word: str) -> str:
            return new + word[len(old) :] if word.partition("=")[0] == old else word

        environ, file = ({new if k == old else k: v for k, v in m.items()} for m in (self.environ, self.file))
        return msgspec.structs.replace(self, set=tuple(map(other, self.set)), environ=environ, file=file)

    def saying(self, flag: str, value: str | None) -> Case:
        """The same with a flag more, as the console reads it."""
        parse("plan", [flag, *([] if value is None else [value])])
        if flag == "--set" and value:
            name = value.partition("=")[0]
            case = self.without(name)
            return msgspec.structs.replace(case, set=(*case.set, value))
        field = flag.removeprefix("--").replace("-", "_")
        flags = {**self.flags, field: value if value is not None else True}
        if field in ("cuda", "cpu"):
            flags = {k: v for k, v in flags.items() if k not in ("cuda", "cpu") or k == field}
        if field == "jobs":
            flags["jobs"] = int(value or "1")
        if field == "with_helper":
            flags["with_helper"] = (value,)
        return msgspec.structs.replace(self, flags=flags)


def advices(case: Case, finding: Finding) -> Iterator[tuple[str, Case]]:
    """Go through what a fix says to set, to drop and to call otherwise; each is one way by itself.

    What a first sentence drops is gone before anything else is set.
    """
    first = re.match(r"(?:Drop|Unset) (\w+)\. ", finding.fix)
    base = case.without(first[1]) if first else case
    for flag, value in SAID.findall(QUOTED.sub("", finding.fix)):
        value = shlex.split(value)[0] if value else None
        if flag in OTHER or (value is None and flag not in WHOLE) or (value and OPEN.search(value)):
            continue
        if flag in WHOLE:
            value = None
        old = OLD.match(finding.text) if finding.fix.startswith("Did you mean") else None
        yield f"{flag} {value}", (case.without(old[1]) if old else base).saying(flag, value)
    for names in DROPPED.findall(finding.fix):
        yield f"drop {names}", case.without(names.partition(" or ")[0])
    for new in MEANT.findall(finding.fix):
        old = OLD.match(finding.text)
        assert old, finding
        yield f"{old[1]} is {new}", case.renamed(old[1], new)


def follow(case: Case) -> list[str]:
    """Follow every advice; return those that were."""
    followed = []
    for finding in case.plan().findings:
        if finding.status not in ("warn", "error"):
            continue
        assert finding.fix, finding
        for word, then in advices(case, finding):
            after = then.plan().findings
            same = [
                each
                for each in after
                if (each.id, each.status, each.text) == (finding.id, finding.status, finding.text)
            ]
            assert not same, (word, finding)
            followed.append(word)
    return followed


def machine(torch: str, capability: str, cuda: str, free: int, disk: int, *, old: bool) -> Facts:
    checkout = (modern_tree if torch >= "2.14" and len(torch) > 5 else tree)(version=torch, reads=READS)
    compilers = (tool("g++", "9.4.0"), tool("gcc", "9.4.0")) if old else linux_facts().compilers
    return cuda_facts(
        *([toolkit(cuda)] if cuda else []),
        gpus=(gpu(capability),),
        driver=driver("535.183.01" if old else "580.65.06"),
        tree=checkout,
        compilers=compilers,
        memory=Memory(total=free * GIB, available=free * GIB),
        disk=Disk(path="/src/pytorch", mount="/", free=disk * GIB, total=900 * GIB),
    )


def odd(facts: Facts, *kinds: str) -> Facts:
    """The same machine with these peculiarities."""
    cuda = facts.cuda or Cuda()
    of_cuda: dict[str, dict[str, Any]] = {
        "hidden": {"visible": ""},
        "another visible": {
            "visible": "1",
            "gpus": (*cuda.gpus, gpu("6.1", bus="0000:02:00.0", uuid="GPU-2")),
        },
        "no driver": {"driver": None, "gpus": (GpuSeen(probe="pci", pci_id="10de:2b85"),)},
        "a name alone": {"gpus": (GpuSeen(probe="nvidia-smi", name="Tesla T4"),)},
        "two toolkits": {"toolkits": (*cuda.toolkits, toolkit("12.4"))},
    }
    others: dict[str, dict[str, Any]] = {
        "no BLAS": {"blas": ()},
        "riscv64": {
            "host": Host(os="linux", arch="riscv64", distribution="Debian GNU/Linux 13", libc="glibc 2.41")
        },
        "GCC 16": {"compilers": (tool("g++", "16.1.0"), tool("gcc", "16.1.0"))},
    }
    for kind in kinds:
        if kind in of_cuda:
            facts = replace(facts, cuda=replace(facts.cuda or Cuda(), **of_cuda[kind]))
        else:
            facts = replace(facts, **others[kind])
    return facts


ODDITIES = (
    *("hidden", "another visible", "no driver", "a name alone", "two toolkits"),
    *("no BLAS", "riscv64", "GCC 16"),
)
MACHINES = st.builds(
    machine,
    torch=st.sampled_from(["1.8.1", "1.13.1", "2.1.2", "2.6.0", "2.8.0", "2.9.1", "2.14.1", "2.15.0"]),
    capability=st.sampled_from(["6.1", "7.0", "8.6", "9.0", "12.0"]),
    cuda=st.sampled_from(["", "11.8", "12.4", "12.8", "13.0"]),
    free=st.sampled_from([3, 31, 500]),
    disk=st.sampled_from([4, 400]),
    old=st.booleans(),
)


@bounds(max_examples=examples(6, 600))
@given(
    facts=MACHINES,
    kinds=st.lists(st.sampled_from(ODDITIES), max_size=2, unique=True),
    words=st.lists(
        st.tuples(st.sampled_from(ODD), st.sampled_from(LAYERS)),
        max_size=3,
        unique_by=lambda p: p[0].partition("=")[0],
    ),
    flags=st.sampled_from(FLAGS),
)
def test_every_setting_that_is_advised_changes_the_finding(
    facts: Facts, kinds: list[str], words: list[tuple[str, str]], flags: dict[str, Any]
) -> None:
    layers: dict[str, dict[str, str]] = {layer: {} for layer in LAYERS}
    for word, layer in words:
        name, _, value = word.partition("=")
        layers[layer][name] = value
    case = Case(
        odd(facts, *kinds),
        tuple(f"{k}={v}" for k, v in layers["set"].items()),
        layers["environ"],
        layers["file"],
        flags,
    )
    follow(case)


@each_case("number", range(len(ODD)))
def test_each_odd_setting_alone(number: int) -> None:
    name, _, value = ODD[number].partition("=")
    facts = (
        machine("2.6.0", "8.6", "12.4", 31, 400, old=False),
        machine("2.14.1", "7.0", "13.0", 3, 4, old=True),
        windows_facts(),
    )[number % 3]
    flags = {"cuda": True} if number % 2 and number % 3 < 2 else {}
    layer = number % 3
    follow(
        Case(
            facts,
            set=(ODD[number],) if layer == 0 else (),
            environ={name: value} if layer == 1 else {},
            file={name: value} if layer == 2 else {},
            flags=flags,
        )
    )


@each_case("kind", ODDITIES)
def test_each_odd_machine_alone(kind: str) -> None:
    for flags in ({"cuda": True}, {}, {"cuda": True, "arch": "8.6"}):
        follow(Case(odd(machine("2.6.0", "8.6", "12.8", 31, 400, old=False), kind), flags=flags))
