"""Everything that a build with CUDA decides and checks beyond a CPU build, in one place."""

from __future__ import annotations

from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.compiler import Compilers, check_host
from torchbuild_tasks.plan.cuda.archs import are_named, choose_archs
from torchbuild_tasks.plan.cuda.best import choose_best
from torchbuild_tasks.plan.cuda.checks import check_archs, check_toolkit
from torchbuild_tasks.plan.cuda.devices import check_devices, devices
from torchbuild_tasks.plan.cuda.driver import check_driver
from torchbuild_tasks.plan.cuda.toolkit import host_limits
from torchbuild_tasks.plan.cuda.values import ChosenCuda
from torchbuild_tasks.plan.cuda.variables import (
    check_magma,
    library_variables,
    toolkit_path,
    toolkit_variables,
)
from torchbuild_tasks.plan.jetson import check_jetson, jetson_variables
from torchbuild_tasks.plan.question import Question


def choose_cuda(question: Question) -> ChosenCuda:
    """Decide toolkit, architectures, limits of host compilers, and the variables that follow from them."""
    toolkit = choose_best(question)
    gpus = devices(question)
    archs = choose_archs(question, toolkit, gpus)
    return ChosenCuda(
        toolkit=toolkit,
        gpus=gpus,
        archs=archs,
        limits=host_limits(question, toolkit),
        variables=(*toolkit_variables(question, toolkit), *((archs.choice,) if archs.choice else ())),
        open_variables=(
            *library_variables(question, toolkit, archs),
            *jetson_variables(question, toolkit),
        ),
        path=toolkit_path(question, toolkit),
    )


def check_cuda(question: Question, cuda: ChosenCuda, compilers: Compilers) -> tuple[Finding, ...]:
    """Check toolkit, host compiler, GPUs, driver and architectures, and on a Jetson the board."""
    return (
        *check_toolkit(question, cuda.toolkit, cuda.gpus),
        *check_host(question, compilers, cuda.limits),
        *check_devices(question, cuda.gpus, named=are_named(question)),
        *check_driver(question, cuda.toolkit.version, cuda.gpus, cuda.archs.archs),
        *check_archs(question, cuda.toolkit, cuda.archs, cuda.gpus),
        *check_jetson(question, cuda.toolkit),
        *check_magma(question, cuda.toolkit, cuda.archs),
    )
