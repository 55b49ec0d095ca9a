"""A torch of small real libraries, broken in each way, compared with the real loader's errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler, needs_proc
from tests.support.sample import materialise
from torchbuild_tasks.features.closure.act import find_closure
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.closure import Closure
from torchbuild_tasks.verify import session

pytestmark = [pytest.mark.integration, needs_linux_compiler, needs_proc]

INIT = "# loads libtorch_global_deps\nfrom torch._C import x\n"
VERSIONS = "{name}_1 {{ global: {old}; local: *; }};\n{name}_2 {{ global: {new}; }} {name}_1;\n"


@dataclass
class Torch:
    """A venv with a torch of four libraries: _C -> libtorch_python -> libc10 -> libzz (of two versions)."""

    python: str
    lib: Path
    other: Path  # an empty folder for LD_LIBRARY_PATH

    @property
    def extension(self) -> Path:
        return self.lib.parent / f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"

    def closure(self, **environ: str) -> Closure:
        return find_closure(self.python, {**os.environ, **environ})

    def said(self, **environ: str) -> str:
        """What the real loader says when the extension is loaded; "" when it loads."""
        code = f"import ctypes; ctypes.CDLL({str(self.extension)!r}, 2)"
        env = {**os.environ, **environ}
        done = subprocess.run([self.python, "-I", "-c", code], env=env, capture_output=True, text=True)
        return done.stderr.strip().rpartition("\n")[2] or (
            "" if not done.returncode else f"rc {done.returncode}"
        )


def compiled(path: Path, source: str, *flags: str) -> None:
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(path), "-", f"-Wl,-soname,{path.name}", *flags]
    subprocess.run(argv, input=source, text=True, check=True)


def make_zz(folder: Path, *, new: bool = True) -> None:
    script = folder / "versions"
    script.write_text(VERSIONS.format(name="ZZ", old="zz_old", new="zz_new" if new else "zz_none"))
    source = "int zz_old(void){return 1;} int zz_new(void){return 2;}"
    if not new:
        script.write_text("ZZ_1 { global: zz_old; local: *; };\n")
    compiled(folder / "libzz.so.1", source, f"-Wl,--version-script={script}")
    script.unlink()


@pytest.fixture
def torch(tmp_path: Path) -> Torch:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    package = Path(site.stdout.strip()) / "torch"
    made = Torch(python, package / "lib", tmp_path / "other")
    made.lib.mkdir(parents=True)
    made.other.mkdir()
    (package / "__init__.py").write_text(INIT)
    here = (f"-L{made.lib}", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN", f"-Wl,-rpath-link,{made.lib}")
    make_zz(made.lib)
    c10 = made.lib / "libc10.so"
    compiled(
        c10,
        "int zz_old(void); int zz_new(void); int c10(void){return zz_old()+zz_new();}",
        *here,
        "-l:libzz.so.1",
    )
    compiled(made.lib / "libtorch_global_deps.so", "int deps(void){return 0;}")
    compiled(made.lib / "libtorch_python.so", "int c10(void); int tp(void){return c10();}", *here, "-lc10")
    rpath = (*here[:2], "-Wl,-rpath,$ORIGIN/lib", here[3])
    compiled(made.extension, "int tp(void); int PyInit__C(void){return tp();}", *rpath, "-ltorch_python")
    return made


def wrong_machine(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[18:20] = (0xB7 if data[18] != 0xB7 else 0x3E, 0)
    path.write_bytes(data)


Break = Callable[[Torch], object]
IN_FRONT = "in front"  # the folder `other` stands in LD_LIBRARY_PATH

# What is done to it, the finding, and what the real loader says.
CASES: Mapping[str, tuple[Break, str, str, str]] = {
    "removed": (lambda t: (t.lib / "libc10.so").unlink(), "missing libc10.so", "libc10.so: cannot open", ""),
    "renamed": (
        lambda t: (t.lib / "libzz.so.1").rename(t.lib / "libzz.so.2"),
        "missing libzz.so.1",
        "libzz.so.1: cannot open",
        "",
    ),
    "empty": (lambda t: (t.lib / "libc10.so").write_bytes(b""), "damaged libc10.so", "file too short", ""),
    "text": (
        lambda t: (t.lib / "libc10.so").write_text("GROUP ( x )" * 99),
        "damaged libc10.so",
        "invalid ELF",
        "",
    ),
    "another machine": (
        lambda t: wrong_machine(t.lib / "libc10.so"),
        "other machine libc10.so",
        "libc10.so: cannot open",
        "",
    ),
    "an older one first": (
        lambda t: make_zz(t.other, new=False),
        "version libzz.so.1",
        "version `ZZ_2' not found",
        IN_FRONT,
    ),
    "another one first": (
        lambda t: compiled(t.other / "libc10.so", "int other(void){return 0;}"),
        "symbol libc10.so",
        "undefined symbol: c10",
        IN_FRONT,
    ),
    "a folder first": (
        lambda t: (t.other / "libc10.so").mkdir(),
        "damaged libc10.so",
        "cannot read file data",
        IN_FRONT,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_leaf_is_what_the_loader_stumbles_over(torch: Torch, case: str) -> None:
    spoil, finding, said, where = CASES[case]
    spoil(torch)
    environ = {"LD_LIBRARY_PATH": str(torch.other)} if where else {}
    assert said in torch.said(**environ)
    errors = [each for each in torch.closure(**environ).breaks if each.status == "error"]
    assert f"{errors[0].kind} {errors[0].library}" == finding


def test_a_sound_torch_closes_and_its_files_are_those_of_the_process(torch: Torch) -> None:
    assert torch.said() == ""
    closure = torch.closure()
    assert (closure.problem, closure.breaks) == ("", ())
    found = {Path(each.path).name for each in closure.libraries}
    assert {"libtorch_global_deps.so", "libtorch_python.so", "libc10.so", "libzz.so.1"} <= found
    loads = (
        f"ctypes.CDLL({str(torch.lib / 'libtorch_global_deps.so')!r}); ctypes.CDLL({str(torch.extension)!r})"
    )
    code = f"import ctypes, json; {loads}; print(open('/proc/self/maps').read())"
    maps = subprocess.run([torch.python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    for each in closure.libraries:
        assert os.path.realpath(each.path) in maps or "lib-dynload" in each.path, each


def test_what_the_loader_passes_over_is_no_finding(torch: Torch) -> None:
    """A library of another machine in front, and one that is there twice under one name."""
    (torch.other / "libc10.so").write_bytes((torch.lib / "libc10.so").read_bytes())
    wrong_machine(torch.other / "libc10.so")
    environ = {"LD_LIBRARY_PATH": str(torch.other)}
    assert torch.said(**environ) == ""
    assert torch.closure(**environ).breaks == ()


def test_a_python_without_torch_and_a_torch_without_its_compiled_part(torch: Torch) -> None:
    torch.extension.unlink()
    assert "has no compiled part" in torch.closure().problem
    (torch.lib.parent / "__init__.py").unlink()
    assert find_closure("/nonexistent/python", os.environ).problem


def test_the_verification_names_the_leaf_before_the_words_of_python(torch: Torch) -> None:
    (torch.lib / "libzz.so.1").unlink()
    report = session.verify(
        python=torch.python, expectations=[Expectation(check="import")], environ=os.environ
    )
    first, *more = report.checks[0].detail.splitlines()
    assert first.startswith("libzz.so.1 is missing, which libc10.so needs.")
    assert any(line.startswith(f"  looked in: {torch.lib}, ") for line in more)
    assert any("libtorch_python.so > " in line for line in more)
    assert any("Python says: ImportError: libzz.so.1: cannot open" in line for line in more)


def test_the_command_line(torch: Torch, tmp_path: Path) -> None:
    source = materialise(tmp_path / "source")
    argv = [sys.executable, "-m", "torchbuild_tasks.fronts.console", "verify", "--closure"]
    argv += ["--source", str(source), "--python", torch.python]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "it closes" in done.stdout
    (torch.lib / "libc10.so").unlink()
    broken = subprocess.run([*argv, "--json"], capture_output=True, text=True)
    assert broken.returncode == 7
    [found] = json.loads(broken.stdout)["breaks"]
    assert (found["library"], found["kind"]) == ("libc10.so", "missing")
