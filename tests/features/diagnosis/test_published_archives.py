"""What pip builds from a published archive: git fills none."""

from __future__ import annotations

from tests.features.diagnosis.test_premises import read

_FAILS = """  error: subprocess-exited-with-error
  × Preparing metadata (pyproject.toml) did not run successfully.
  ╰─> [3 lines of output]
      cc1: fatal error: /tmp/enscons/xxmodule.c: No such file or directory
      compilation terminated.
        File "/tmp/pip-install-0kdo4w72/cryptacular_faf9f8933438485da6c9089c383efade/SConstruct", line 27:
      [end of output]
error: metadata-generation-failed"""


def test_git_brings_nothing_back_into_a_published_archive() -> None:
    cause = read(f"Collecting cryptacular (from apex)\n{_FAILS}").diagnoses[0]
    assert cause.id == "missing-source"
    assert "--only-binary :all: cryptacular" in cause.fix
    assert "git submodule" not in cause.fix


def test_git_does_in_a_checkout() -> None:
    cause = read("cc1: fatal error: /pt/src/xxmodule.c: No such file or directory").diagnoses[0]
    assert "git submodule" in cause.fix
