"""A slip in a name, a plugin of protoc, a part of a package that is there: each has a fix of its own."""

# ruff: noqa: E501  (a message in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_SLIP = "Write {} in the line"
_PLUGIN = "{0}: program not found or is not executable\nPlease specify a program using absolute path or make sure the program is available in your PATH system variable\n--{1}_out: {0}: Plugin failed with status code 1."


@each_case(
    "line, meant",
    [
        (
            "a.cpp:2:5: error: ‘class std::vector<int>’ has no member named ‘sizes’; did you mean ‘size’?",
            "size",
        ),
        ("a.cpp:2:5: error: no member named 'sizes' in 'std::vector<int>'; did you mean 'size'?", "size"),
        ("a.cpp:2:5: error: ‘vectr’ is not a member of ‘std’; did you mean ‘vector’?", "vector"),
        ("a.cpp:2:5: error: ‘struct Mine’ has no member named ‘weihgt’; did you mean ‘weight’?", "weight"),
        ("a.cpp:2:5: error: ‘class at::Tensor’ has no member named ‘sizess’; did you mean ‘sizes’?", "sizes"),
        # another name is another version
        (
            "a.cpp:2:5: error: ‘class at::Tensor’ has no member named ‘is_metal’; did you mean ‘is_meta_of’?",
            "",
        ),
        ("a.cpp:2:5: error: ‘class at::Tensor’ has no member named ‘foo’", ""),
    ],
)
def test_a_name_one_letter_away_is_a_slip(line: str, meant: str) -> None:
    fix = read(line).diagnoses[0].fix
    assert fix.startswith(_SLIP.format(meant)) if meant else "Write " not in fix


@each_case(
    "name, fix",
    [
        ("cpp", "protoc --cpp_out="),
        ("java", "protoc --java_out="),
        ("grpc_cpp", "$(command -v grpc_cpp_plugin)"),
        ("mypy", "--plugin=protoc-gen-mypy="),
    ],
)
def test_a_plugin_of_protoc_is_named_by_its_own_line(name: str, fix: str) -> None:
    reading = read(_PLUGIN.format(f"protoc-gen-{name}", name))
    assert (reading.line_number, reading.kind) == (1, "missing-tool")
    assert fix in reading.diagnoses[0].fix


@each_case(
    "name, fix",
    [("torch.utils.cpp_extension", "A torch is found"), ("torch", "Install torch first")],
)
def test_in_isolation_a_part_that_lacks_is_of_another_package(name: str, fix: str) -> None:
    log = f'  File "/tmp/pip-build-env-wq0tbnv0/overlay/lib/python3.11/site-packages/setuptools/build_meta.py", line 317, in run_setup\n  File "<string>", line 2, in <module>\nModuleNotFoundError: No module named \'{name}\''
    assert read(f"Traceback (most recent call last):\n{log}").diagnoses[0].fix.startswith(fix)
