"""Build variables: which value each one gets, from which layer, and whether anything reads it."""

from __future__ import annotations

from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import variable_row
from torchbuild_tasks.core.words import nearest
from torchbuild_tasks.model import Choice, EnvOp, Finding

# Decided as fields of the plan (from these variables too), so not listed a second time.
DECIDED_APART = frozenset(
    ("CC", "CXX", "CMAKE_BUILD_TYPE", "CMAKE_GENERATOR", "DEBUG", "MAX_JOBS", "REL_WITH_DEB_INFO")
)
FALSE_WORDS = frozenset(("0", "OFF", "NO", "FALSE", "N"))


def is_off(value: str | None) -> bool:
    """Whether a value means false; PyTorch's build takes 0/OFF/NO/FALSE/N in any case."""
    return value is not None and value.upper() in FALSE_WORDS


def decide(question: Question, name: str) -> Choice | None:
    """Return the value of one variable by the precedence, or None when no layer names it."""
    return question.decided.get(name)


def decide_all(question: Question) -> tuple[Choice, ...]:
    """Every variable that any layer names and that may be set, sorted by name."""
    names = sorted(question.decided.keys() - DECIDED_APART)
    return tuple(question.decided[name] for name in names if not _refused(question, name))


def unset_refused(question: Question) -> tuple[EnvOp, ...]:
    """Take out of the environment what must not be there."""
    return tuple(
        EnvOp(op="unset", name=name, because=reason)
        for name in sorted(question.facts.environ)
        if (reason := _refused(question, name))
    )


def check_variables(question: Question) -> tuple[Finding, ...]:
    """Names that nothing reads, names that are refused, and pairs that contradict."""
    named = {**question.settings.variables, **question.assignments}
    findings = [_check_name(question, name) for name in sorted(named)]
    findings += [_check_environment(question, name) for name in sorted(question.facts.environ)]
    findings += [_check_device(question), _check_version_pair(question)]
    return tuple(finding for finding in findings if finding)


def _refused(question: Question, name: str) -> str:
    row = variable_row(question.catalog, name, question.era, question.version)
    return row.refused if row else ""


def _check_name(question: Question, name: str) -> Finding | None:
    if reason := _refused(question, name):
        return Finding(
            id="variable", status="error", text=f"{name} must not be set: {reason}", fix=f"Drop {name}."
        )
    if variable_row(question.catalog, name, question.era, question.version):
        return None
    near = nearest(name, (row.name for row in question.catalog.variable if "*" not in row.name))
    text = f"{name} is read by nothing in a {question.era} build of torch {question.facts.tree.version}"
    fix = f"Did you mean {near}?" if near else "It is set all the same; nothing would happen."
    return Finding(id="variable", status="warn", text=text, fix=fix)


def _check_environment(question: Question, name: str) -> Finding | None:
    if not (reason := _refused(question, name)):
        return None
    text = f"{name} is set in your environment and is taken out for the build: {reason}"
    return Finding(id="variable", status="warn", text=text)


def _check_device(question: Question) -> Finding | None:
    cpu = question.given("cpu")
    cuda = question.given("cuda")
    if cpu and cuda and cpu[1] == cuda[1]:
        text = f"{cpu[2]} and {cuda[2]} contradict each other"
        return Finding(id="device", status="error", text=text, fix="Give one of them.")
    wanted = question.assignments.get("USE_CUDA")
    if question.request.cpu and wanted is not None and not is_off(wanted):
        text = f"--cpu and --set USE_CUDA={wanted} contradict each other"
        return Finding(id="device", status="error", text=text, fix="Give one of them.")
    return None


def _check_version_pair(question: Question) -> Finding | None:
    pair = ("PYTORCH_BUILD_VERSION", "PYTORCH_BUILD_NUMBER")
    have = [name for name in pair if decide(question, name)]
    if len(have) != 1:
        return None
    missing = next(name for name in pair if name not in have)
    return Finding(
        id="version-pair",
        status="error",
        text=f"{have[0]} is set without {missing}; PyTorch's build asserts both or neither",
        fix=f"Add --set {missing}=… or drop {have[0]}.",
    )
