"""The container engines, and the facts of the machine for a container."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.container.look import has_subids, look_at_engines, look_at_host

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of sh, ids of users")

ROWS = {row.name: row for row in load_catalog().engine}


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)


@pytest.mark.integration
def test_an_engine_that_does_not_answer_says_why(tmp_path: Path) -> None:
    program(tmp_path, "docker", "echo 'Cannot connect to the daemon' >&2; exit 1")
    program(tmp_path, "podman", "exit 0")
    probe = Probe(environ={"PATH": str(tmp_path)})
    podman, docker, buildah = look_at_engines((ROWS["podman"], ROWS["docker"], ROWS["buildah"]), probe)
    assert (podman.path, podman.problem) == (str(tmp_path / "podman"), "")
    assert podman.rootless is (os.geteuid() != 0)
    assert docker.problem == "Cannot connect to the daemon"
    assert buildah.path == ""


@pytest.mark.integration
def test_docker_says_itself_that_it_runs_without_root(tmp_path: Path) -> None:
    program(tmp_path, "docker", "echo '28.0 [name=seccomp name=rootless]'")
    (docker,) = look_at_engines((ROWS["docker"],), Probe(environ={"PATH": str(tmp_path)}))
    assert (docker.rootless, docker.subids) == (True, has_subids())


@pytest.mark.parametrize(
    ("subuid", "subgid", "has"),
    [("{me}:100000:65536", "{me}:100000:65536", True), ("{me}:1:2", "ada:1:2", False), (None, None, False)],
)
def test_ids_to_give_away(subuid: str | None, subgid: str | None, has: bool, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name, text in (("subuid", subuid), ("subgid", subgid)):
        if text is not None:
            (tmp_path / "etc" / name).write_text(text.format(me=os.getuid()) + "\n", "utf-8")
    assert has_subids(tmp_path) is has


def test_how_this_machine_gets_packages_is_handed_on(tmp_path: Path) -> None:
    """pip's own settings, certificates and proxies by name; a worktree's own git folder."""
    settings, certificates = tmp_path / ".config/pip/pip.conf", tmp_path / "own.pem"
    settings.parent.mkdir(parents=True)
    settings.touch()
    certificates.touch()
    checkout = tmp_path / "wt"
    checkout.mkdir()
    (checkout / ".git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/wt\n", "utf-8")
    (tmp_path / "main/.git/worktrees/wt").mkdir(parents=True)
    back = tmp_path / "main/.git/worktrees/wt/gitdir"
    back.write_text(f"{checkout}/.git\n", "utf-8")
    (tmp_path / "etc/cdi").mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "SSL_CERT_FILE": str(certificates), "https_proxy": "http://u:p@h:1"}
    host = look_at_host(str(checkout), environ, tmp_path)
    assert (host.pip, host.certificates) == (str(settings), str(certificates))
    assert host.proxies == ("https_proxy",)
    assert host.common == str(tmp_path / "main/.git")
    assert not host.cdi
    assert look_at_host(str(checkout), {**environ, "PIP_CONFIG_FILE": os.devnull}, tmp_path).pip == ""
    own = {**environ, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    (tmp_path / "xdg/pip").mkdir(parents=True)
    (tmp_path / "xdg/pip/pip.conf").touch()
    assert look_at_host(str(checkout), own, tmp_path).pip == str(tmp_path / "xdg/pip/pip.conf")
    (tmp_path / "etc/cdi/nvidia.yaml").touch()
    assert look_at_host(str(checkout), environ, tmp_path).cdi
    back.write_text(f"{tmp_path}/another/.git\n", "utf-8")  # a checkout may name any folder
    assert look_at_host(str(checkout), environ, tmp_path).common == ""
    (checkout / ".git").write_text("gitdir: ../.git/modules/x\n", "utf-8")
    assert look_at_host(str(checkout), environ, tmp_path).common == ""


def test_pips_settings_are_those_that_pip_reads(tmp_path: Path) -> None:
    """pip 26.3, _internal/configuration.py: XDG's folder counts, and the null device stands for no file."""
    for name in ("xdg", "home/.config"):
        (tmp_path / name / "pip").mkdir(parents=True)
        (tmp_path / name / "pip/pip.conf").touch()
    environ = {"HOME": f"{tmp_path}/home", "XDG_CONFIG_HOME": f"{tmp_path}/xdg"}
    assert look_at_host("/co", environ).pip == f"{tmp_path}/xdg/pip/pip.conf"
    assert look_at_host("/co", {**environ, "PIP_CONFIG_FILE": os.devnull}).pip == ""
