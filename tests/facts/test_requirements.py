"""What checkouts ask their builders to install, in the way of each era."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.requirements import build_requirements, install_requirements

PROBE = Probe(environ={})


def test_a_dependency_group_counts_before_requirements_txt(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n", "utf-8")
    groups = {
        "build": ["setuptools>=77,<82", "ninja"],
        "dev": [{"include-group": "build"}, "ninja", "sympy>=1.13.3", {"other": "thing"}, 3],
    }
    asked = build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups})
    assert asked == ("setuptools>=77,<82", "ninja", "sympy>=1.13.3")


def test_requirements_txt_with_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "# Python dependencies\n-r requirements-build.txt\n--index-url https://example.org\n\n"
        "build[uv]  # for wheels\nlintrunner ; platform_machine != 's390x'\nsix --hash=sha256:00\n",
        "utf-8",
    )
    (tmp_path / "requirements-build.txt").write_text("setuptools>=70.1.0\n-r requirements.txt\n", "utf-8")
    assert build_requirements(PROBE, str(tmp_path), {}) == (
        *("setuptools>=70.1.0", "build[uv]", "lintrunner ; platform_machine != 's390x'", "six"),
    )


@pytest.mark.parametrize("groups", [None, [], {"docs": ["sphinx"]}])
def test_a_checkout_without_either_asks_for_nothing(tmp_path: Path, groups: object) -> None:
    assert build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups}) == ()


def test_a_group_that_includes_itself_ends(tmp_path: Path) -> None:
    groups = {"dev": ["numpy", {"include-group": "dev"}]}
    assert build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups}) == ("numpy",)


OF_2_6 = """
import sys
from setuptools import setup

def configure():
    extra_install_requires = []
    extra_install_requires += os.getenv("MORE", "").split("|")
    return extra_install_requires

def main():
    install_requires = [
        "filelock",
        'sympy==1.13.1 ; python_version >= "3.9"',
    ]
    if BUILD_PYTHON_ONLY:
        install_requires.append(f"{LIBTORCH_PKG_NAME}=={get_torch_version()}")
        install_requires.append("only-a-run-can-tell")
    extra_install_requires = configure()
    install_requires += extra_install_requires
    setup(name="torch", install_requires=install_requires, extras_require={"optree": ["optree"]})

if __name__ == "__main__":
    main()
"""


def asked_by(
    setup: str, tmp_path: Path, project: Mapping[str, object] | None = None
) -> tuple[str, ...] | None:
    (tmp_path / "setup.py").write_text(setup, "utf-8")
    return install_requirements(PROBE, str(tmp_path), {"project": project} if project else {})


def test_what_setup_py_gives_to_install_requires_is_read_and_not_run(tmp_path: Path) -> None:
    assert asked_by(OF_2_6, tmp_path) == ("filelock", 'sympy==1.13.1 ; python_version >= "3.9"')
    dynamic = {"name": "torch", "dynamic": ["version", "dependencies"]}
    assert asked_by(OF_2_6, tmp_path, dynamic) == asked_by(OF_2_6, tmp_path)


@pytest.mark.parametrize(
    ("condition", "marker"),
    [
        ("sys.version_info < (3, 8)", 'python_version < "3.8"'),
        ("sys.version_info[0] == 2", 'python_version == "2.*"'),
        ("platform.system() == 'Windows'", "platform_system == 'Windows'"),
        ("sys.platform != 'win32'", "sys_platform != 'win32'"),
    ],
)
def test_a_condition_becomes_the_marker_that_asks_the_same(
    condition: str, marker: str, tmp_path: Path
) -> None:
    text = (
        f"needs = ['six']\nif {condition}:\n    needs.extend(['dataclasses; extra == \"a\"'])\n"
        "else:\n    needs += ('future',)\nsetuptools.setup(install_requires=needs + ['pip'])\n"
    )
    six, dataclasses, future, pip = asked_by(text, tmp_path) or ()
    assert (six, pip) == ("six", "pip")
    assert dataclasses == f'dataclasses ; {marker} and (extra == "a")'
    opposite = {"<": ">=", "==": "!=", "!=": "=="}
    name, sign, value = marker.split(" ")
    assert future == f"future ; {name} {opposite[sign]} {value}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print 'Python 2'",
        "setup(**words)",
        "setup(install_requires=read('requirements.txt'))",
        "setup(install_requires=from_elsewhere)",
    ],
)
def test_what_only_a_run_can_tell_is_not_guessed(text: str, tmp_path: Path) -> None:
    assert asked_by(text, tmp_path) is None


def test_setup_py_without_requirements_asks_for_nothing(tmp_path: Path) -> None:
    assert asked_by("setup(name='torch')", tmp_path) == ()


def test_dependencies_of_a_project_count_where_they_are_not_dynamic(tmp_path: Path) -> None:
    assert asked_by(OF_2_6, tmp_path, {"dependencies": [" sympy>=1.13.3 "]}) == ("sympy>=1.13.3",)
    assert asked_by(OF_2_6, tmp_path, {"name": "torch", "dynamic": ["version"]}) == ()


@pytest.mark.parametrize(
    "tool",
    [
        {"dynamic-metadata": [{"provider": {"path": "tools", "module": "metadata.needs"}}]},
        {"dynamic-metadata": [{"provider": "tools.metadata.needs:Class"}]},
        {
            "scikit-build": {
                "metadata": {"dependencies": {"provider": "metadata.needs", "provider-path": "tools"}}
            }
        },
    ],
)
def test_a_provider_of_dynamic_metadata_is_read(tool: dict[str, object], tmp_path: Path) -> None:
    """The way of 2.14 and later."""
    folder = tmp_path / "tools" / "metadata"
    folder.mkdir(parents=True)
    text = "BASE_DEPENDENCIES = ['filelock', 'sympy>=1.13.3']\nOTHER: list[str] = ['x']\n"
    (folder / "needs.py").write_text(text, "utf-8")
    data = {"project": {"name": "torch", "dynamic": ["dependencies"]}, "tool": tool}
    assert install_requirements(PROBE, str(tmp_path), data) == ("filelock", "sympy>=1.13.3")
