"""Run a verb for every runner; the only `except TorchbuildError`.

Results go to stdout, everything else to stderr; with --json stdout holds one JSON object and nothing else.
"""

from __future__ import annotations

import errno
import gc
import os
import re
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import NotBuilt, TorchbuildError, Untrusted, UsageError
from torchbuild_tasks.fronts.output import (
    complete_commands,
    err,
    error_object,
    error_text,
    json_text,
    out,
    show,
)
from torchbuild_tasks.fronts.parsing import begin_early, load, texts_of_flag
from torchbuild_tasks.fronts.reporter import ConsoleReporter
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.text.redaction import Redactor
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import to_json
from torchbuild_tasks.verbs import VERBS, Outcome

_NOT_YOURS: Final = (
    "Make it yours to read and write, or name another place; TORCHBUILD_CACHE is where torchbuild keeps what "
    "checkouts share."
)
_LATER: Final = "Run the same command again once that disk or server answers."
# Fixes for system errors that are not bugs.
_ADVICE_BY_NAME: Final = {
    **dict.fromkeys(("EACCES", "EPERM", "EROFS", "ENOTDIR"), _NOT_YOURS),
    **dict.fromkeys(("EIO", "ESTALE", "ETIMEDOUT", "ENOTCONN", "ENODEV", "ENXIO"), _LATER),
    "ENOSPC": "That disk is full: make room there, and run the same command again.",
    "EDQUOT": "Your quota on that disk is used up: make room there, and run the same command again.",
    "EMFILE": "This process may open no more files; where there is ulimit, ulimit -n 4096 allows more.",
    "ENFILE": "The system has no more open files to give: end programs that hold many, and try again.",
    "ENOMEM": "The system has no more memory to give: end programs that use much of it, and try again.",
    "ENAMETOOLONG": "Work in a folder with a shorter path.",
    "ELOOP": "Links lead around in a circle there: remove the one that is wrong.",
}
# By number: Windows lacks some names, and `errno.errorcode` has names of socket errors for others.
_ADVICE: Final = {getattr(errno, name, 0): text for name, text in _ADVICE_BY_NAME.items()}

# By default Python collects cycles at every 700 new values; the listing of an install has 40,000 in no cycle.
# That was 0.03 of 0.5 CPU s of a build of 2.6.0 with nothing to do.
_COLLECTED_EVERY: Final = 50_000


def run_verb(verb: str, request: BuildRequest) -> int:
    """Run one verb and print its outcome.

    Returns:
        The exit code: 0, or that of the error (errors.py).
    """
    gc.set_threshold(_COLLECTED_EVERY)
    gc.enable()
    # Relative folders of PATH depend on the current folder, which may be a checkout.
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(each for each in folders if Path(each.strip('"')).is_absolute())
    report = ConsoleReporter(quiet=request.quiet, verbose=request.verbose, silent=request.json)
    original = request
    try:
        with report, interruptible(), begin_early(verb, request):
            settle(verb, request, report)
            if VERBS[verb].about_one_build:
                request = _with_default(verb, request, report)
            if not VERBS[verb].attached:
                report.begin(VERBS[verb].summary)
            outcome = load(verb)(request, report)
            report.end()
            if VERBS[verb].advises:
                outcome = outcome._replace(text=complete_commands(outcome.text, original))
            show_outcome(outcome, report.redactor, as_json=request.json, request=request)
            return outcome.exit_code
    except TorchbuildError as error:
        error.what = _as_written(error.what, original)
        if isinstance(error, NotBuilt):
            error.next_step = _wait_for(request) or error.next_step
        show_error(error, as_json=request.json, redactor=report.redactor, request=original)
        return error.exit_code
    except (MemoryError, RuntimeError, OSError) as error:
        refused = _explain_memory(error) or _explain_home(error, original) or _explain_file(error)
        if refused is None:  # a bug of this tool
            raise
        show_error(refused, as_json=request.json, redactor=report.redactor)
        return refused.exit_code


def _wait_for(request: BuildRequest) -> str:
    """Return what to do where a build that would leave what is missing is under way; "" without one."""
    from torchbuild_tasks.context import who_works

    running = who_works(request)
    return f"{running} works on this checkout now. Wait until it is over." if running else ""


def _as_written(what: str, request: BuildRequest) -> str:
    """Return what is wrong about a flag with the variable in its place that gave it."""
    for field in request.from_environment:
        what = re.sub(rf"^{flag_name(field)}(?![\w-])", variable_name(field), what)
    return what


def _explain_memory(error: Exception) -> UsageError | None:
    """Return the error of a process that gets no more memory or threads."""
    text = str(error)
    if not isinstance(error, MemoryError) and "can't start new thread" not in text:
        return None
    return UsageError(
        f"The system gives this process no more memory or threads: {text or 'out of memory'}.",
        next_step="End programs that use much of it. Where there is ulimit, ulimit -a says what this process "
        "may have: -v is memory in KiB, -u the threads of the user.",
    )


def _explain_home(error: Exception, request: BuildRequest) -> UsageError | None:
    """Return the error about a `~` without HOME, or of a user that is not known; it names the word given."""
    if str(error) != "Could not determine home directory.":  # pathlib's
        return None
    words = (each for value in to_json(request).values() for each in texts_of_flag(value))
    word = next((each for each in words if each.startswith("~")), "~")
    return UsageError(
        f"{word}: {word.partition('/')[0]} is no home directory that this system knows.",
        next_step="Write the path in full.",
    )


def _explain_file(error: Exception) -> UsageError | None:
    """Return the error about a file or folder that the system did not give, with the fix for its number."""
    # Before Python 3.13 Path.resolve() raises RuntimeError for links in a circle, from an OSError.
    known = error if isinstance(error, OSError) else error.__context__
    if not isinstance(known, OSError):
        return None
    if isinstance(known, FileNotFoundError) and not known.filename and not _has_current_folder():
        return UsageError("The current folder was removed.", next_step="Change to one that exists: cd ~")
    fix = _ADVICE.get(known.errno) if known.errno else None
    if not fix or not known.filename or (known is not error and known.errno != errno.ELOOP):
        return None
    return UsageError(f"{known.filename}: {known.strerror}.", next_step=fix)


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def settle(verb: str, request: BuildRequest, report: ConsoleReporter) -> None:
    """Ask at a terminal, before a verb acts, whether found files are trusted; --yes is no answer to that.

    Raises:
        Untrusted: there is no terminal, or the answer was no.
    """
    if verb == "trust":
        return
    from torchbuild_tasks.context import read_trusted_settings, with_templates
    from torchbuild_tasks.plan.trust import withheld_text

    try:
        settings = with_templates(read_trusted_settings(request))
    except UsageError:  # reported by the code that needs the file
        return
    lines = tuple(f"{place}: {withheld_text(names)}" for place, names in settings.withheld.items())
    commands = "\n".join(f"torchbuild trust {as_word(place)}" for place in settings.withheld)
    if not lines:
        return
    if only_reads(verb, request):
        if not VERBS[verb].shows_untrusted:
            for line in lines:
                report.note(f"Ignored, because it is not trusted: {line}")
        return
    if not request.json and report.confirm(f"{' '.join(lines)}. Do you trust what these files say?"):
        from torchbuild_tasks.features.trust.act import trust_all

        trust_all(settings.withheld)
        return
    raise Untrusted(
        "Settings that came with this checkout name programs, servers or remote places. They are not trusted."
        " Nothing was done.",
        looked=lines,
        next_step=f"Read the files. To trust them as they are now:\n{commands}\n"
        "Or use your own settings, which need no trust: --config FILE",
    )


def only_reads(verb: str, request: BuildRequest) -> bool:
    """Say whether this run only reads."""
    reads = VERBS[verb].reads
    return request.dry_run or "" in reads or request.action in reads


def _with_default(verb: str, request: BuildRequest, report: ConsoleReporter) -> BuildRequest:
    from torchbuild_tasks.context import take_default

    try:
        return take_default(request, report.note)
    except UsageError:
        if verb != "support":  # a report may be about settings that cannot be read
            raise
        return request


def show_outcome(
    outcome: Outcome,
    redactor: Redactor | None = None,
    *,
    as_json: bool,
    request: BuildRequest | None = None,
) -> None:
    """Print the value for a program, or the text for a person, redacted."""
    redactor = redactor or Redactor(os.environ, people=False)
    value = to_json(outcome.value)
    for known in (value, to_json(request)):
        redactor.learn(known)
    if as_json:
        out(json_text(redactor.value(value)))
    elif outcome.text:
        show(redactor.text(outcome.text))


def show_error(
    error: TorchbuildError,
    *,
    as_json: bool,
    redactor: Redactor | None = None,
    request: BuildRequest | None = None,
) -> None:
    """Print an error as a paragraph, or as one JSON object for a program."""
    redactor = redactor or Redactor(os.environ, people=False)
    request = request or BuildRequest()
    if as_json:
        error.next_step = complete_commands(error.next_step, request)
        out(json_text(redactor.value(to_json(error_object(error)))))
    else:
        err(redactor.text(complete_commands(error_text(error), request)))
