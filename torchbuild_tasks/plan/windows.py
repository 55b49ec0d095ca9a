"""What can go wrong on a Windows machine before a line is compiled."""

from __future__ import annotations

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.plan.question import Question

# Beyond it Ninja without long paths ends in "manifest 'build.ninja' still dirty after 100 tries"
# (pytorch issue 134956).
LONGEST_CHECKOUT = 52


def check_windows(decisions: Decisions) -> tuple[Finding, ...]:
    """Check path lengths, git and debug libraries, and give advice about the antivirus."""
    question = decisions.question
    return (
        *_check_length(question),
        *_check_git(question),
        *_check_debug(decisions),
        _antivirus(question),
    )


def _check_length(question: Question) -> tuple[Finding, ...]:
    root, windows = question.facts.tree.root, question.facts.windows
    findings = []
    if windows and windows.long_paths is not True:
        known = "off" if windows.long_paths is False else "not known"
        text = f"LongPathsEnabled is {known}: programs cannot use paths of more than 260 characters"
        fix = (
            "As administrator: reg add HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem "
            "/v LongPathsEnabled /t REG_DWORD /d 1 /f"
        )
        findings.append(Finding(id="long-paths", status="warn", text=text, fix=fix))
    if len(root) > LONGEST_CHECKOUT:
        text = (
            f"{root} has {len(root)} characters; beyond {LONGEST_CHECKOUT} Ninja may end in "
            "\"manifest 'build.ninja' still dirty after 100 tries\""
        )
        findings.append(
            Finding(id="path-length", status="warn", text=text, fix="Use a short folder, such as C:\\pt.")
        )
    return tuple(findings)


def _check_git(question: Question) -> tuple[Finding, ...]:
    windows = question.facts.windows
    if not question.facts.tree.git or (windows and windows.git_long_paths):
        return ()
    text = "git's core.longpaths is not on; some submodules have paths that it cannot check out without"
    fix = "git config --global core.longpaths true"
    return (Finding(id="git-long-paths", status="warn", text=text, fix=fix),)


def _check_debug(decisions: Decisions) -> tuple[Finding, ...]:
    python = decisions.python.python
    if decisions.build_type.value != "Debug" or python is None or python.debug_library is not False:
        return ()
    library = f"python{series(python.version).replace('.', '')}_d.lib"
    text = f"a Debug build links {library}, and {python.executable} does not have it (LNK1104)"
    fix = (
        'Use --build-type RelWithDebInfo, or add "Download debug binaries" with the installer of python.org.'
    )
    return (Finding(id="python-debug", status="error", text=text, fix=fix),)


def _antivirus(question: Question) -> Finding:
    """Advice only: what is excluded from it is for the owner of the machine to say."""
    root = question.facts.tree.root
    text = "an antivirus reads every object file as it is written, which slows the build"
    fix = f"If you may and want to, as administrator: Add-MpPreference -ExclusionPath '{root}'"
    return Finding(id="antivirus", status="ok", text=text, fix=fix)
