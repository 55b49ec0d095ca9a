"""Containers decided from facts of machines that do not exist, and their files, held to golden ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import jetsons
from tests.support.cuda import cuda_facts, gpu
from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, plan_of_question, settings, tree
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.errors import ContainerError, PlanRefused, UsageError
from torchbuild_tasks.features.container import show
from torchbuild_tasks.features.container.choose import (
    Container,
    Engine,
    Host,
    check_path,
    choose_engine,
    choose_memory,
    find_mirror,
    make_container,
)
from torchbuild_tasks.model import Facts, Memory, Store
from torchbuild_tasks.values import replace

GOLDEN = Path(__file__).parent / "golden"
ROWS = {row.name: row for row in load_catalog().engine}
USER = Host(uid=1000, gid=1000, cdi=True)


def contain(
    facts: Facts, engine: str = "podman", host: Host = USER, *, rootless: bool = True, **flags: Any
) -> Container:
    row = ROWS[engine]
    own = {name: flags.pop(name) for name in ("image", "registry", "memory") if name in flags}
    made = Engine(row=row, path=f"/usr/bin/{engine}", rootless=rootless)
    return make_container(ask(facts, **flags), made, host, plan_of_question, **own)[0]


def workstation() -> Facts:
    """An Ubuntu with a GPU and a driver, and no toolkit at all: the image brings it."""
    return cuda_facts(gpus=(gpu(),), pythons=(), compilers=(), tools=())


CASES = {
    "cuda": lambda: contain(
        workstation(),
        "docker",
        replace(USER, certificates="/etc/ssl/own.pem", pip="/home/ada/.config/pip/pip.conf"),
        rootless=False,
        cuda=True,
        arch="8.6",
        set=("USE_FLASH_ATTENTION=0",),
    ),
    "jetson": lambda: contain(jetsons.orin_nano(), cuda=True, preset="jetson"),
}


@each_case("name", CASES)
def test_golden(name: str) -> None:
    """A new file is written by: TORCHBUILD_GOLDEN=1 python -m pytest tests/features/container."""
    container = CASES[name]()
    texts = {
        show.CONTAINERFILE: show.containerfile(container, "torchbuild_tasks"),
        show.DEVCONTAINER: show.devcontainer(container),
        show.COMPOSE: show.compose(container),
        "run": "\n".join(show.run_argv("ENGINE", container, "IMAGE", ("ninja",), tty=True)) + "\n",
    }
    for file, text in texts.items():
        golden = GOLDEN / f"{name}.{file}"
        if os.environ.get("TORCHBUILD_GOLDEN"):
            golden.write_bytes(text.encode())
        assert text.encode() == golden.read_bytes(), golden.name


@each_case("name", CASES)
def test_the_files_are_what_their_formats_say(name: str) -> None:
    """compose.yaml read again says what the command line says; devcontainer.json is JSON."""
    container = CASES[name]()
    service = yaml.safe_load(show.compose(container))["services"]["torch"]
    assert [(each["source"], each["target"]) for each in service["volumes"]] == [
        (mount.source, mount.target) for mount in container.mounts
    ]
    assert service["mem_limit"] == container.memory
    data = json.loads(show.devcontainer(container))
    assert data["workspaceMount"].startswith("type=bind,source=/src/pytorch,")
    assert "SYS_PTRACE" in data["runArgs"]
    assert data["hostRequirements"] == {"gpu": "optional"}


@each_case(
    ("facts", "flags", "base"),
    [
        (linux_facts(), {}, "debian:bookworm"),
        (linux_facts(), {"cuda": True, "cuda_toolkit": "12.6"}, "12.6.3-cudnn-devel-ubuntu24.04"),
        (linux_facts(), {"cuda": True, "cuda_toolkit": "pypi:12.8"}, "debian:bookworm"),
        (linux_facts(tree=tree(version="1.13.1")), {"cuda": True}, "11.7.1-cudnn8-devel-ubuntu22.04"),
        (jetsons.thor(), {"cuda": True}, "13.0.2-cudnn-devel-ubuntu24.04"),
        (jetsons.orin_nano(), {"cpu": True}, "debian:bookworm"),
    ],
)
def test_the_base_follows_torch_cuda_and_board(facts: Facts, flags: dict[str, Any], base: str) -> None:
    assert contain(facts, **flags).base.endswith(base)


def test_the_system_of_the_machine_comes_first_where_it_fits() -> None:
    facts = linux_facts()
    ubuntu = replace(facts, host=replace(facts.host, distribution="Ubuntu 24.04.3 LTS"))
    assert contain(ubuntu).base == "docker.io/library/ubuntu:24.04"


def test_a_driver_that_is_too_old_for_upstreams_cuda_gets_an_older_image() -> None:
    facts = workstation()
    assert facts.cuda is not None
    assert facts.cuda.driver is not None
    old = replace(facts, cuda=replace(facts.cuda, driver=replace(facts.cuda.driver, cuda="12.6")))
    assert "cuda:12.6" in contain(old, cuda=True).base


def test_jobs_follow_the_memory_limit() -> None:
    """The number of jobs in the container follows its memory limit."""
    engine = Engine(row=ROWS["podman"], path="/usr/bin/podman")
    _, plan = make_container(ask(linux_facts()), engine, USER, plan_of_question, memory=5 * GIB)
    (jobs,) = (choice for choice in plan.choices if choice.name == "jobs")
    assert jobs.value == "2"
    assert "the container's memory limit" in jobs.because


@each_case(("total", "limit"), [(64 * GIB, 56 * GIB), (4 * GIB, 3 * GIB), (GIB, GIB // 2)])
def test_an_eighth_of_the_memory_stays_outside(total: int, limit: int) -> None:
    facts = linux_facts(memory=Memory(total=total, available=total))
    assert int(choose_memory(facts, 0, ROWS["podman"]).value) == limit


def test_a_plan_that_no_image_helps_is_refused() -> None:
    with pytest.raises(PlanRefused, match="in any image") as refused:
        contain(linux_facts(tree=tree(version="1.10.0")))
    assert any("does not fit" in finding.text for finding in refused.value.findings)


def test_a_checkout_that_cannot_be_written_to_is_no_fault_of_an_image() -> None:
    with pytest.raises(PlanRefused, match="in any container") as refused:
        contain(linux_facts(tree=tree(root="/src/torch", writable=False)))
    assert refused.value.findings[0].text.startswith("/src/torch cannot be written to")


@each_case(
    ("facts", "flags", "says"),
    [
        (jetsons.xavier_nx(), {"cuda": True}, "Jetson with L4T 35.2.1"),
        (linux_facts(), {"cuda": True, "cuda_toolkit": "9.9"}, "No image is known for CUDA 9.9"),
        (linux_facts(), {"cuda": True, "cuda_toolkit": "/opt/cuda"}, "is a folder of this machine"),
        (linux_facts(tree=tree(root="/src/a,b")), {}, "has ',' in its name"),
    ],
)
def test_what_cannot_be_is_reported(facts: Facts, flags: dict[str, Any], says: str) -> None:
    with pytest.raises(ContainerError, match=says):
        contain(facts, **flags)


def test_odd_paths() -> None:
    for fine in ("/home/a b/$x/Ünï#1", "C:\\src\\pytorch"):
        check_path(fine)
    for odd in ("/a:b", '/a"b', "/a\nb", "C:\\a:b"):
        with pytest.raises(ContainerError):
            check_path(odd)


def test_a_dollar_in_a_path_is_none_of_composes_variables() -> None:
    container = contain(linux_facts(tree=tree(root="/src/$HOME x")))
    assert "/src/$$HOME x" in show.compose(container)
    assert "/src/$HOME x," in show.devcontainer(container)


@each_case(
    ("mirrors", "image"),
    [
        ((), "docker.io/library/debian:bookworm"),
        (("docker.io=here:5000/hub",), "here:5000/hub/library/debian:bookworm"),
        (("nvcr.io=here",), "docker.io/library/debian:bookworm"),
        (("docker.io/library=here/own/",), "here/own/debian:bookworm"),
        (("here",), "here/library/debian:bookworm"),
    ],
)
def test_mirrors(mirrors: tuple[str, ...], image: str) -> None:
    assert find_mirror("docker.io/library/debian:bookworm", mirrors) == image


def test_a_mirror_has_no_scheme() -> None:
    with pytest.raises(UsageError, match="no scheme"):
        find_mirror("docker.io/library/debian:bookworm", ("docker.io=https://here",))


def test_a_named_image_is_reported_as_unknown() -> None:
    container = contain(linux_facts(), image="example.org/own:1")
    assert container.base == "example.org/own:1"
    assert "What example.org/own:1 holds is not known" in container.notes[0]
    assert contain(linux_facts(), image="mirror/library/ubuntu:24.04").notes == ()


def test_without_a_specification_of_gpus_podman_gets_none_and_says_how() -> None:
    container = contain(workstation(), host=replace(USER, cdi=False), cuda=True)
    assert not container.gpu
    assert "nvidia-ctk cdi generate" in container.choices[2].because


def test_what_of_this_machine_does_not_come_along_is_named() -> None:
    made = Engine(row=ROWS["podman"], path="/usr/bin/podman")
    question = ask(linux_facts(environ={"MAX_JOBS": "3"}), settings({}))
    notes = make_container(question, made, USER, plan_of_question)[0].notes
    assert ["/src/torchbuild.toml" in notes[0], "MAX_JOBS" in notes[1], len(notes)] == [True, True, 2]


def test_root_stays_root() -> None:
    text = show.containerfile(contain(linux_facts(), host=Host(uid=0, gid=0), rootless=False), "t")
    assert "useradd" not in text
    assert "USER" not in text.replace("USER_ID", "")


# ---------------- engines


def test_the_first_engine_that_answers_is_taken() -> None:
    deaf = Engine(row=ROWS["podman"], path="/usr/bin/podman", problem="no machine")
    docker = Engine(row=ROWS["docker"], path="/usr/bin/docker")
    assert choose_engine((deaf, docker), None) is docker
    with pytest.raises(ContainerError, match="podman cannot be used") as refused:
        choose_engine((deaf, docker), "podman")
    assert refused.value.looked == ("podman: no machine",)


def test_without_an_engine_it_says_how_to_get_one() -> None:
    with pytest.raises(ContainerError, match="no program here") as refused:
        choose_engine([Engine(row=row) for row in ROWS.values()], None)
    assert "Install podman" in refused.value.next_step
    assert refused.value.exit_code == 20


def test_buildah_gets_what_it_can_give() -> None:
    """Its mounts are read-only unless they say so; it has no volumes, limits no memory, gives no GPU."""
    facts = replace(workstation(), store=Store(folder="/store"))
    container = contain(facts, "buildah", replace(USER, pip="/etc/pip.conf"), cuda=True)
    words = show.run_argv("buildah", container, "NAME", ("ninja",), tty=True)
    assert words[:5] == ["buildah", "run", "--isolation", "chroot", "-t"]
    assert [word for word in words if word.startswith("type=")] == [
        "type=bind,source=/src/pytorch,target=/workspace,rw",
        "type=bind,source=/store/container-cache,target=/home/builder/.cache,rw",
        "type=bind,source=/etc/pip.conf,target=/etc/pip.conf,readonly",
    ]
    assert "--memory" not in words and not container.gpu
    with pytest.raises(ContainerError, match="cannot limit the memory") as refused:
        contain(workstation(), "buildah", memory=GIB)
    assert "--jobs N" in refused.value.next_step


def test_a_user_without_subordinate_ids_gets_the_fix() -> None:
    poor = Engine(row=ROWS["podman"], path="/usr/bin/podman", rootless=True, subids=False)
    with pytest.raises(ContainerError, match="no ids") as refused:
        choose_engine((poor,), None)
    assert "usermod --add-subuids" in refused.value.next_step
