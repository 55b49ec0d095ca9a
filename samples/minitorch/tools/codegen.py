"""Write the C++ that follows from native_functions.yaml.

    codegen.py headers  native_functions.yaml  ATen/Functions.h
    codegen.py bindings native_functions.yaml  ops.cpp
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

MARK = "// Written by tools/codegen.py from native_functions.yaml. Do not edit.\n"

# How each type of the file is declared, and how it comes from Python.
CPP_TYPES = {"Tensor": "const Tensor&", "float": "double"}
PYTHON_SIDE = {"Tensor": "PyObject*", "float": "double"}
FORMATS = {"Tensor": "O!", "float": "d"}
TARGETS = {"Tensor": "tensor_type(), &{}", "float": "&{}"}
VALUES = {"Tensor": "unwrap({})", "float": "{}"}


class Argument(NamedTuple):
    type: str
    name: str
    default: str  # "" when there is none


class Function(NamedTuple):
    name: str
    arguments: list[Argument]
    returns: str


def parse(line: str) -> Function:
    match = re.fullmatch(r"- func: (\w+)\((.*)\) -> (\w+)", line)
    if match is None:
        raise SystemExit(f"native_functions.yaml: cannot read: {line}")
    name, arguments, returns = match.groups()
    return Function(name, [parse_argument(each) for each in arguments.split(", ")], returns)


def parse_argument(text: str) -> Argument:
    type_, _, rest = text.partition(" ")
    name, _, default = rest.partition("=")
    return Argument(type_, name, default)


def headers(functions: list[Function]) -> str:
    declarations = "".join(map(declaration, functions))
    return (
        f"{MARK}#pragma once\n\n#include <ATen/Tensor.h>\n#include <c10/macros/Export.h>\n\n"
        f"namespace at {{\n\n{declarations}\n}}  // namespace at\n"
    )


def declaration(function: Function) -> str:
    arguments = ", ".join(
        f"{CPP_TYPES[each.type]} {each.name}" + (f" = {each.default}" if each.default else "")
        for each in function.arguments
    )
    return f"TORCH_API {function.returns} {function.name}({arguments});\n"


def bindings(functions: list[Function]) -> str:
    return (
        f"{MARK}#include <ATen/Functions.h>\n#include <torch/csrc/Exceptions.h>\n"
        "#include <torch/csrc/Ops.h>\n#include <torch/csrc/Tensor.h>\n\n"
        "namespace torch {\nnamespace {\n\n"
        + "\n".join(map(binding, functions))
        + "\n}  // namespace\n\n"
        + table("op_functions", "with_keywords({})", functions)
        + table("op_methods", "with_keywords(as_method<{}>)", functions)
        + "}  // namespace torch\n"
    )


def binding(function: Function) -> str:
    arguments = function.arguments
    required = [each for each in arguments if not each.default]
    formats = [FORMATS[each.type] for each in arguments]
    formats.insert(len(required), "|")
    names = ", ".join(f'"{each.name}"' for each in arguments)
    variables = "".join(map(variable, arguments))
    targets = ", ".join(TARGETS[each.type].format(each.name) for each in arguments)
    values = ", ".join(VALUES[each.type].format(each.name) for each in arguments)
    return (
        f"PyObject* {function.name}(PyObject*, PyObject* args, PyObject* kwargs) {{\n"
        f"  static const char* names[] = {{{names}, nullptr}};\n"
        f"{variables}"
        f'  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "{"".join(formats)}:{function.name}",\n'
        f"                                   const_cast<char**>(names), {targets}))\n"
        f"    return nullptr;\n"
        f"  return guarded([&] {{ return wrap(at::{function.name}({values})); }});\n"
        f"}}\n"
    )


def variable(argument: Argument) -> str:
    return f"  {PYTHON_SIDE[argument.type]} {argument.name} = {argument.default or '{}'};\n"


def table(name: str, entry: str, functions: list[Function]) -> str:
    rows = "".join(
        f'    {{"{each.name}", {entry.format(each.name)}, METH_VARARGS | METH_KEYWORDS, nullptr}},\n'
        for each in functions
    )
    return f"PyMethodDef {name}[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}}}};\n\n"


def main(what: str, source: str, output: str) -> None:
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    functions = [parse(line) for line in lines if line and not line.startswith("#")]
    text = {"headers": headers, "bindings": bindings}[what](functions)
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # as torchgen: unchanged is untouched
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
