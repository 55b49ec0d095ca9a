"""Advise a CUDA toolkit: the one with which a finding is gone, found by planning with each.

Every obtainable toolkit goes through the checks of the planned one, so what is advised is what those
checks accept. A fix contains a placeholder, which is filled in here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.compiler import (
    check_compilers,
    choose_compilers,
    list_installable,
)
from torchbuild_tasks.plan.cuda.best import Drawbacks, choose_best, drawbacks_of, is_usual
from torchbuild_tasks.plan.cuda.candidates import (
    WEIGHTS,
    Candidate,
    Trial,
    candidates_for,
    common_errors,
    ends,
    in_archive,
    judge,
    puts_right,
    try_toolkit,
    weigh,
)
from torchbuild_tasks.plan.cuda.checks import LIBC_ID
from torchbuild_tasks.plan.cuda.cudnn import cudnn_of_torch
from torchbuild_tasks.plan.cuda.devices import devices
from torchbuild_tasks.plan.cuda.toolkit import (
    MANAGED,
    asked_series,
    distance,
    is_outside,
    series_of,
    why_unusable,
)
from torchbuild_tasks.plan.cuda.values import (
    ADVISED,
    ARCHIVE,
    OR_ADVISED,
    OR_OTHERS,
    OTHER_TORCH,
    ChosenToolkit,
    Device,
    OtherTorch,
)
from torchbuild_tasks.plan.environment import first_python, fits
from torchbuild_tasks.plan.jetson import JETPACK_ID, board, later_jetpack
from torchbuild_tasks.plan.packages import how_to_install_gcc
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import split_assignment
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.values import replace

WITHOUT: Final = "Build without CUDA (--cpu), or where glibc is: nothing else helps here."
# What must be gone with another torch that is advised.
_TOLD: Final = ("cuda-toolkit", "gpu-code", "driver", "host-compiler", "architectures")


class _Ways(msgspec.Struct, frozen=True, kw_only=True):
    """What the findings of one plan are answered with.

    `now` are the findings of the planned toolkit, None without any; `tried` says that upstream built this
    torch with it. `lead` is the toolkit that all advice
    names where one puts all errors right; `refused` says that there are such errors. `more` are the
    candidates with every host compiler that can be installed, and `other` names another torch: both are
    found by planning many times, so only if asked for. `torch` says that a finding asks for another torch.
    """

    candidates: tuple[Candidate, ...]
    now: tuple[Finding, ...] | None
    tried: bool = False
    lead: Candidate | None = None
    refused: bool = False
    torch: bool = False
    more: Callable[[], tuple[Candidate, ...]]
    other: Callable[[], OtherTorch | None]


def advise(question: Question, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Fill in the toolkit that each finding advises; the others stay as they are.

    All name the same one: what a finding of its own would prefer may bring back another's.
    """
    if not any(map(_is_open, findings)):
        return findings
    if (question.facts.host.libc or "").startswith("musl"):  # the row that refuses CUDA there has the way out
        return tuple(replace(each, fix=WITHOUT) if _is_open(each) else each for each in findings)
    candidates = tuple(candidates_for(question))
    chosen = choose_best(question)
    word = _word_of(chosen)
    ways = _Ways(
        candidates=candidates,
        now=judge(question, word, devices(question)) if word else None,
        tried=chosen.version is not None and not is_outside(question, chosen.version),
        refused=any(each.status == "error" and ADVISED in each.fix for each in findings),
        more=functools.cache(lambda: tuple(candidates_for(_with_installable(question)))),
        other=functools.cache(lambda: _torch_that_fits(question, candidates)),
    )
    ways = replace(ways, lead=_choose_lead(question, findings, ways))
    torch = any(OTHER_TORCH in each.fix and not _is_here_for(question, each, ways) for each in findings)
    ways = replace(ways, torch=torch)
    filled = tuple(_fill_in(question, finding, ways) for finding in findings)
    told = tuple(_with_toolkit(question, each, ways) for each in filled) if ways.refused else filled
    return tuple(_keep_python(each, told, ways) for each in told)


def flags_of_cuda(question: Question) -> str:
    """Return the flags that make a CPU build one with CUDA: also a toolkit where none is here."""
    if any(not why_unusable(toolkit) for toolkit in question.cuda.toolkits):
        return "--cuda"
    request = replace(question.request, cpu=False, cuda=True)
    kept = tuple(text for text in request.set if split_assignment(text)[0] != "USE_CUDA")
    asked = replace(question, request=replace(request, set=kept))
    best = best_toolkit(asked, (), tuple(candidates_for(asked)))
    return f"--cuda {question.line('--cuda-toolkit', best.word)}" if best and best.word else "--cuda"


def _choose_lead(question: Question, findings: tuple[Finding, ...], ways: _Ways) -> Candidate | None:
    """Return the toolkit with which all errors are gone, and if one does, what is warned of, too.

    Of warnings alone it is the best that ends one.
    """
    wanted = [each for each in findings if _wants_toolkit(each)]
    errors = [each for each in wanted if each.status == "error"]
    if not errors:
        able = [best for each in wanted if (best := _best_for(question, each, ways))]
        return min(able, key=lambda each: each.weight, default=None)
    best = best_toolkit(question, errors, ways.candidates)
    if best is None and any(ADVISED in each.fix for each in errors):
        best = best_toolkit(question, errors, ways.more(), installing=True)
    heavy = [each for each in wanted if weigh((each,))]
    if best and not all(ends(best, each) for each in heavy):
        whole = best_toolkit(question, heavy, ways.candidates)
        whole = whole or best_toolkit(question, heavy, ways.more(), installing=True)
        best = whole if whole and whole.weight < best.weight and whole.place <= best.place else best
    return best


def _with_toolkit(question: Question, finding: Finding, ways: _Ways) -> Finding:
    """Advise no host compiler for a toolkit that is refused, where another one and its compiler fit."""
    if finding.id != "host-compiler" or finding.status != "error":
        return finding
    best = best_toolkit(question, [finding], ways.candidates)
    best = best or best_toolkit(question, [finding], ways.more(), installing=True)
    return replace(finding, fix=f"{_sentence(question, best)}.") if best else finding


def _with_installable(question: Question) -> Question:
    """Return the question as if every GCC that can be installed here were here, after those that are.

    What names a compiler is left out: the advice to install one names that one.
    """
    facts, named = question.facts, ("CXX", "CC", "CUDAHOSTCXX")
    kept = (text for text in question.request.set if split_assignment(text)[0] not in named)
    return replace(
        question,
        request=replace(question.request, set=(*kept, *(f"{name}=" for name in named))),
        facts=replace(facts, compilers=(*facts.compilers, *list_installable(question))),
    )


def _is_open(finding: Finding) -> bool:
    return _wants_toolkit(finding) or OTHER_TORCH in finding.fix


def _wants_toolkit(finding: Finding) -> bool:
    return ADVISED in finding.fix or OR_ADVISED in finding.fix


def _word_of(chosen: ChosenToolkit) -> str:
    """Return the value of --cuda-toolkit that names a toolkit; "" without one."""
    return f"{MANAGED}{chosen.managed.version}" if chosen.managed else chosen.root


def best_toolkit(
    question: Question,
    findings: Iterable[Finding],
    candidates: tuple[Candidate, ...],
    *,
    installing: bool = False,
) -> Candidate | None:
    """Return the candidate with which all findings are gone and nothing is an error; None where none is so.

    Those that are here or can be put together come first, then what weighs least, then those of the planned
    one's major, then what is installed, then the planned series, then what does not call a GPU here
    deprecated, then what upstream built this torch with, then what makes code of its own for the GPUs here,
    then what is nearest to its own.

    Args:
        question: what is planned.
        findings: what the advice is for.
        candidates: each with its findings. An error that all of them have is counted against none.
        installing: whether only those count for which a host compiler is installed.
    """
    common = common_errors(candidates)
    wanted = tuple(findings)

    def fits_all(each: Candidate) -> bool:
        able = not installing or each.gcc is not None
        return able and all(puts_right(each, finding, common) for finding in wanted)

    nearer = [each for each in candidates if each.place < 2 and fits_all(each)]
    fitting = nearer or [each for each in candidates if each.place == 2 and fits_all(each)]
    chosen = choose_best(question) if fitting else ChosenToolkit()
    planned = chosen.version
    # One that is asked for and not here comes before what is here.
    asked_for = _meant(question, chosen) if fitting and planned is None else None
    gpus = devices(question) if fitting else ()

    def away(each: Candidate) -> tuple[int, bool, bool, int, bool, Drawbacks]:
        other = planned is not None and each.version.major != planned.major
        ours = asked_for is not None and each.version == asked_for
        last = drawbacks_of(question, each.version, gpus)
        return each.weight, not ours, other, each.place, each.version != planned, last

    return min(fitting, key=away, default=None)


def _meant(question: Question, chosen: ChosenToolkit) -> Version | None:
    """Return the series that is asked for, if only by the folder of one that cannot be used."""
    broken = {series_of(each.version) for each in chosen.broken}
    return asked_series(question) or (broken.pop() if len(broken) == 1 else None)


def _fill_in(question: Question, finding: Finding, ways: _Ways) -> Finding:
    """Fill in a toolkit, and another torch; no other torch where a toolkit that is here does."""
    if ways.lead and _is_here_for(question, finding, ways):
        return replace(
            finding, fix=finding.fix.replace(OTHER_TORCH + OR_ADVISED, _sentence(question, ways.lead))
        )
    if OTHER_TORCH in finding.fix:
        torch = ways.other()
        words = torch.words if torch else "a newer torch, and what builds it (torchbuild versions)"
        finding = replace(finding, fix=finding.fix.replace(OTHER_TORCH, f"Take {words}"))
    if not _wants_toolkit(finding):
        return finding
    best = _best_for(question, finding, ways)
    lead = ways.lead
    if best and lead and (best.word, best.version) != (lead.word, lead.version):
        return replace(finding, fix=_after_lead(question, finding, lead, ways))
    if best and lead and ways.refused and finding.status == "warn":  # what the error needs ends this one, too
        return replace(finding, fix=f"{_sentence(question, lead)}.")
    sentence = _sentence(question, best) if best else _nothing(question, finding, ways)
    only = ADVISED in finding.fix
    untried = best and (_is_untried(question, best, ways) or (only and ways.torch and finding.id in _TOLD))
    other = ways.other() if finding.status == "warn" and untried else None
    if other and (only or ARCHIVE not in other.words):
        sentence = f"Take {other.words}"  # the next plan would say so of that toolkit, or still of this torch
    elif best and only and _is_lesser(question, finding, best, ways) and (way := ways.other()):
        sentence += f"; or take {way.words}"
    elif best and only and ways.torch and finding.id in _TOLD and (way := ways.other()):
        with_torch = f"; or, with this torch, {sentence[0].lower()}{sentence[1:]}"
        sentence = f"{sentence}; or take {way.words}" if best.place == 0 else f"Take {way.words}{with_torch}"
    short = f"; or {sentence[0].lower()}{sentence[1:]}" if _is_second_way(best, finding, ways) else ""
    others = _others(question, finding, best, ways) if OR_OTHERS in finding.fix else ""
    fix = finding.fix.replace(ADVISED, f"{sentence}.").replace(OR_ADVISED, short).replace(OR_OTHERS, others)
    return replace(finding, fix=fix)


def _is_here_for(question: Question, finding: Finding, ways: _Ways) -> bool:
    """Say whether the toolkit that all advice names is here, and ends what another torch would."""
    lead = ways.lead
    here = (
        lead is not None and lead.place == 0 and ends(lead, finding) and not _is_untried(question, lead, ways)
    )
    return here and OTHER_TORCH + OR_ADVISED in finding.fix


def _others(question: Question, finding: Finding, best: Candidate | None, ways: _Ways) -> str:
    """Return the other ways where what is asked for is not here: the very release, and what is installed."""
    common = common_errors(ways.candidates)
    able = [each for each in ways.candidates if each != best and puts_right(each, finding, common)]
    wanted = asked_series(question)
    brought = best is not None and best.version == wanted
    known = (each for each in able if not is_outside(question, each.version))
    install = not brought and any(each.place == 2 and each.version == wanted for each in known)
    here = [question.line("--cuda-toolkit", each.word) for each in able if each.place == 0]
    words = f" Or install CUDA {wanted} ({ARCHIVE}): --cuda-toolkit PATH." if install else ""
    return words + (f" Or take what is here: {', '.join(here)}." if here else "")


def _best_for(question: Question, finding: Finding, ways: _Ways) -> Candidate | None:
    """Return the plan's own answer where that ends this finding, too; else the best for this one."""
    if ways.lead and ends(ways.lead, finding):
        return ways.lead
    best = _if_better(best_toolkit(question, [finding], ways.candidates), finding, ways)
    if best is None and ADVISED in finding.fix:
        best = _if_better(best_toolkit(question, [finding], ways.more(), installing=True), finding, ways)
    return best


def _if_better(best: Candidate | None, finding: Finding, ways: _Ways) -> Candidate | None:
    """Return a candidate for an error; for a warning only one that is better than the planned toolkit."""
    if best is None or finding.status == "error" or ways.now is None:
        return best
    return best if _is_better(best, finding, ways.now) else None


def _after_lead(question: Question, finding: Finding, lead: Candidate, ways: _Ways) -> str:
    """Leave out another toolkit than the plan's, and name a torch with which nothing is left."""
    sentence = _sentence(question, lead)
    first = f"First {sentence[0].lower()}{sentence[1:]}: what else is found asks for it, and this may stay."
    first += f" Or take {other.words}." if (other := ways.other()) else ""
    return finding.fix.replace(ADVISED, first).replace(OR_ADVISED, "")


def _is_second_way(best: Candidate | None, finding: Finding, ways: _Ways) -> bool:
    """Say whether a toolkit is one way of two; not where it asks for a compiler, as the first way does."""
    if best is None or (best.gcc and finding.id == "host-compiler"):
        return False
    return not _costs_more(best, finding, ways)


def _costs_more(best: Candidate, finding: Finding, ways: _Ways) -> bool:
    """Say whether a toolkit that is one way of two brings what the planned one has not (an old driver)."""
    now = {each.id for each in ways.now or ()}
    new = [each for each in best.findings if each.id not in now and WEIGHTS.get(each.id, 0)]
    return finding.status == "error" and ways.now is not None and bool(new)


def _is_better(best: Candidate, finding: Finding, now: tuple[Finding, ...]) -> bool:
    """Say whether less speaks against a candidate than against the planned toolkit.

    Otherwise the next advice would lead back. For a warning without a weight, it has no new kind of finding.
    """
    if weigh((finding,)):
        return best.weight < weigh(now)
    return {each.id for each in best.findings} <= {each.id for each in now}


def _sentence(question: Question, best: Candidate) -> str:
    if best.gcc:
        return _sentence_with_gcc(question, best, best.gcc)
    if best.place == 2:
        kit = f"CUDA {best.version} ({ARCHIVE}){_with_cudnn(best)}"
        return f"Install {kit} and name its folder: --cuda-toolkit PATH{_driver_for(best)}"
    flag = question.line("--cuda-toolkit", best.word)
    return f"Take {flag} ({_how(question, best)}){_driver_for(best)}"


def _is_untried(question: Question, best: Candidate, ways: _Ways) -> bool:
    """Say whether upstream did not build this torch with an advised toolkit, and did with the planned one."""
    return ways.tried and is_outside(question, best.version)


def _is_lesser(question: Question, finding: Finding, best: Candidate, ways: _Ways) -> bool:
    """Say whether the plan with a toolkit that puts an error right would ask for another torch."""
    asks = not ways.torch and any(each.id in ("gpu-code", "cuda-toolkit") for each in best.findings)
    return finding.status == "error" and (asks or _is_untried(question, best, ways))


def _driver_for(best: Candidate) -> str:
    """Return the driver that an advised toolkit needs besides; "" where the one that is here runs it."""
    fixes = (each.fix for each in best.findings if each.id == "driver" and OR_ADVISED in each.fix)
    update = next(fixes, "").partition(OR_ADVISED)[0]
    return f", and {update[0].lower()}{update[1:]}" if update else ""


def _with_cudnn(best: Candidate) -> str:
    """Return the cuDNN that belongs to a toolkit of the archive, which has none; "" where one here fits."""
    lacks = any(each.id == "cudnn" for each in best.findings)
    named = cudnn_of_torch(best.question) if lacks else ""
    return f" with a cuDNN {named} for it (--set CUDNN_ROOT=FOLDER)" if named else ""


def _how(question: Question, best: Candidate) -> str:
    how = "it is put together from NVIDIA's parts" if best.place else "it is here"
    outside = is_outside(question, best.version)
    return f"{how}; upstream did not build this torch with it" if outside else how


def _sentence_with_gcc(question: Question, best: Candidate, gcc: int) -> str:
    """Advise a toolkit and its host compiler, in the order in which they are done."""
    line = how_to_install_gcc(question.facts, question.catalog, (gcc,))
    asked = decide(question, "CUDAHOSTCXX")
    name = question.line("--set", f"{asked.name if asked and asked.value else 'CXX'}=PATH")
    first = f"Install GCC {gcc}, which CUDA {best.version} takes ({line})"
    if best.place == 2:
        kit = f"CUDA {best.version} ({ARCHIVE}){_with_cudnn(best)}"
        return f"{first}, then {kit}, and name both: --cuda-toolkit PATH {name}{_driver_for(best)}"
    flag = question.line("--cuda-toolkit", best.word)
    return (
        f"{first}, then take {flag} ({_how(question, best)}) and name the compiler: {name}{_driver_for(best)}"
    )


def _nothing(question: Question, finding: Finding, ways: _Ways) -> str:
    known = board(question)
    if known is not None and not known.sbsa:
        return _of_jetpack(question)
    planned = choose_best(question).version
    if not ways.candidates:
        return f"No CUDA toolkit is known for {question.facts.host.os} {question.facts.host.arch}"
    candidates = [each for each in ways.candidates if each.version != planned]
    way = f". Or take {other.words}" if (other := ways.other()) else ""
    alone = f": take {other.words}" if other else ""
    if not candidates:
        return f"No CUDA toolkit puts this right here{alone}"
    near = min(
        candidates,
        key=lambda each: (
            (finding.id, finding.status) in {(f.id, f.status) for f in each.findings},
            each.weight,
            distance(question, each.version),
        ),
    )
    same = not ends(near, finding)
    if same or (finding.status == "warn" and ways.now is not None and near.weight >= weigh(ways.now)):
        return f"No CUDA toolkit puts this right here{alone}"  # what is no better is not nearer
    against = sorted(near.findings, key=lambda each: (each.status != "error", each.id != finding.id))
    # The words of a plan with that toolkit: "is planned", "and this is 13.0".
    why = f", of which a plan would say: {against[0].text.partition('. ')[0]}" if against else ""
    # Where one thing alone speaks against it, what that finding advises besides a toolkit helps here, too.
    rest = against[0].fix.replace(ADVISED, "").replace(OR_OTHERS, "").strip() if len(against) == 1 else ""
    rest = f"With that one, {rest[3:]}" if rest.startswith("Or ") else rest
    way = (f". {rest.rstrip('.')}" if against and against[0].id == LIBC_ID and rest else "") + way
    return f"No CUDA toolkit puts this right here. The nearest is {near.version}{why}{way}"


def _keep_python(finding: Finding, findings: tuple[Finding, ...], ways: _Ways) -> Finding:
    """Let the Python stay where a torch that is advised takes it: a newer one would be in its way."""
    if (finding.id, finding.status) != ("python", "error"):
        return finding
    torch = ways.other()
    if torch and torch.keeps_python and any(torch.words in each.fix for each in findings):
        keep = f"Take torch {torch.version}, which builds for it and settles more of this"
        return replace(finding, fix=f"{keep}; or, with this torch: {finding.fix}")
    return finding


def _torch_that_fits(question: Question, candidates: tuple[Candidate, ...]) -> OtherTorch | None:
    """Return the nearest torch series that is built here and with which the finding is gone.

    Nearest is what changes least of what is here: the Python stays where it can, then the planned toolkit,
    then the series is the nearest. Of its toolkits one that is here comes before one that can be put
    together, and that before one of NVIDIA's archive; then the one nearest to what upstream builds it with.
    """
    chosen = choose_best(question)
    gpus = devices(question)
    planned = _word_of(chosen) if chosen.root else ""
    # What the host compiler does, and a driver that no toolkit helps, have a fix of their own.
    now = judge(question, planned, gpus) if planned else ()
    apart = {(each.id, each.text) for each in now if each.id == "host-compiler"}

    def suits(trial: Trial) -> bool:
        told = (each for each in trial.list_findings() if each.id != "driver" or _wants_toolkit(each))
        found = (each for each in told if (each.id, each.text) not in apart)
        return all(each.status != "error" and each.id not in (*_TOLD, JETPACK_ID) for each in found)

    known = _compiler_errors(question)
    errors = [(each, _compiler_errors(each)) for each in _nearest_series(question)]
    # What is wrong with the compiler already has a fix of its own; a torch that it compiles comes first.
    fitting = sorted((each for each in errors if each[1] <= known), key=lambda each: len(each[1]))
    series = [each for each, _ in fitting]
    able = [each for each in series if _has_python(each)]
    for built in (able, [each for each in series if each not in able]):
        kept = (each for each in built if planned and suits(try_toolkit(each, planned, gpus)))
        names = ((as_if, chosen.name) for as_if in kept)
        others = (
            (as_if, _name(question, each))
            for as_if in built
            for each in _nearest_toolkits(as_if, candidates, gpus)
            if suits(_try(as_if, each, gpus))
        )
        for as_if, name in chain(names, others):
            python = "" if built is able else f" and Python {as_if.row.python} (--python)"
            words = f"torch {as_if.row.version}: it fits with {name}{python}"
            return OtherTorch(version=as_if.row.version, keeps_python=built is able, words=words)
    return None


def _nearest_toolkits(
    question: Question, candidates: Iterable[Candidate], gpus: tuple[Device, ...]
) -> list[Candidate]:
    """Return those with which torch is known to build, the usual and the nearest first."""
    known = (each for each in candidates if not is_outside(question, each.version))

    def away(each: Candidate) -> tuple[int, bool, int]:
        return each.place, not is_usual(question, each.version, gpus), distance(question, each.version)

    return sorted(known, key=away)


def _try(question: Question, candidate: Candidate, gpus: tuple[Device, ...]) -> Trial:
    """Return the trial of a torch with a candidate."""
    if candidate.word:
        return try_toolkit(question, candidate.word, gpus)
    return in_archive(question, str(candidate.version), gpus).trial


def _name(question: Question, candidate: Candidate) -> str:
    """Return a toolkit with how it is taken."""
    if not candidate.word:
        return f"CUDA {candidate.version} ({ARCHIVE}; then name its folder: --cuda-toolkit PATH)"
    return f"CUDA {candidate.version} ({question.line('--cuda-toolkit', candidate.word)})"


def _nearest_series(question: Question) -> list[Question]:
    """Return the question for a checkout of each other series, the nearest series first."""
    known = question.catalog.torch
    here = known.index(question.row)
    nearest = sorted(range(len(known)), key=lambda each: (abs(each - here), -each))[1:]
    facts, tree = question.facts, question.facts.tree
    trees = (replace(tree, version=known[each].latest) for each in nearest)
    return [replace(question, facts=replace(facts, tree=each)) for each in trees]


def _compiler_errors(question: Question) -> set[str]:
    """Return the names of the errors of the compilers for a torch."""
    found = check_compilers(question, choose_compilers(question))
    return {each.id for each in found if each.status == "error"}


def _has_python(question: Question) -> bool:
    """Say whether the Python that gets torch, or where none is here any, builds it."""
    python = first_python(question)
    return python is None or fits(question, python) is not False


def _of_jetpack(question: Question) -> str:
    """Advise JetPack's own toolkit; where it is installed, only another torch or JetPack helps."""
    here = [toolkit.version for toolkit in question.cuda.toolkits if not why_unusable(toolkit)]
    if not here:
        return "Install JetPack's: sudo apt-get install nvidia-jetpack"
    versions = list(filter(None, here))
    verb = "are" if len(versions) > 1 else "is"
    text = f"A board runs the CUDA of its JetPack, and {' and '.join(versions)} {verb} here: "
    other = _torch_that_fits(question, ())
    text += f"take {other.words}" if other else "take a torch that is made for it (torchbuild versions)"
    later = later_jetpack(question)
    return text + (f", or a later JetPack ({later.name} has CUDA {later.cuda})" if later else "")
