"""Weigh the words of a line that has no known shape: how much it sounds like an error of any program."""

from __future__ import annotations

import re
from typing import Final


def any_of(*patterns: str) -> re.Pattern[str]:
    """Return the pattern that matches where one of these does."""
    return re.compile("|".join(patterns))


# Counts of zero: "0 errors", "Killed workers: 0", "exited with code 0".
_BAD: Final = (
    r"(?:errors?|fail\w*|kill\w*|crash\w*|abort\w*|time-?outs?|timed out|lost|dropped|reject\w*|fatal"
    r"|unreachable|broken|missing|problems?|issues?|conflicts?)"
)
_COUNTED: Final = (
    r"(?:\(?s\)?|\(OOM\)|jobs|workers|processes|tests|ranges|compilations|connections|builds|units|steps|hits"
    r"|files|packages|targets|count|total|cases|requests|tasks|objects|calls|summary)"
)
_NOTHING: Final = re.compile(
    rf"(?i:error summary: 0 errors|\b(?:0|no|zero) (?:\w+ )?{_BAD}\b(?:\(s\))?(?:,? from 0 contexts)?"
    rf"|\b{_BAD}(?: ?{_COUNTED}){{0,2}}\s{{0,40}}[:=]?\s{{0,40}}\b"
    rf"(?:0\b(?=\s*(?:$|[,;)/|]|[\w ]{{1,20}}[:=]))|none\W{{0,2}}$))"
    r"|(?<=to remove) and \d+ not upgraded|\b(?i:not|never|no) (?:an |a |really an? )?(?i:error|failure)\b"
    r"|\b(?i:error|failure|fault|crash|signal|panic|timeout)[ -](?i:handlers?|handling|hooks?|callbacks?)\b"
    r"(?! (?:\w+ )?(?i:called|invoked|fired|triggered|raised|caught|entered|reached))"
    r"|\b(?:(?:exit(?:ed|s)?|return(?:ed|s)?|finished|completed) )?(?:with )?(?:exit |return )?"
    r"(?:code|status|rc)[ :=]{1,3}0\b"
)
# Messages of the C library for a failed call.
_ERRNO: Final = (
    r"(?:No such file or directory|[Ee]xec format error|[Cc]annot allocate memory|File too large|Bad address"
    r"|No space left on device|Too many open files|Read-only file system|Input/output error|Broken pipe"
    r"|Stale (?:NFS )?file handle|(?:Permission|Access) denied|Resource temporarily unavailable"
    r"|Argument list too long|Disk quota exceeded|Operation not (?:permitted|supported)|Text file busy"
    r"|(?:Device or resource|Resource) busy|Is a directory|Not a directory|File name too long"
    r"|Structure needs cleaning|Connection (?:refused|reset by peer|timed out)|No route to host|Bus error"
    r"|Network is unreachable|Invalid (?:argument|cross-device link)|Transport endpoint is not connected)"
)
# The form of an error of any program: its word at the start, after a place, or with a code.
_LOUD: Final = any_of(
    r"^(?:\W{0,4}|.{0,120}[\s:\]|])"
    r"(?:(?i:fatal|error|critical|panic)|Erreur|Fehler|Errore|Erro|ОШИБКА|错误|エラー|오류)"
    r"(?:\s?[:：!(\[]|\s{2,}(?=\S)| - )",
    r"\b[A-Z]\w{1,60}(?:Error|Exception)(?::|\(|$)",
    # An exception by its whole name.
    r"^(?:[a-z_]\w{0,40}\.){1,8}(?:Invalid|Unsupported|Missing|No[A-Z]|Not|Bad|Unknown|Failed)\w{1,60}: ",
    r"^[^:]{1,120}: (?:.{0,200}: )?"
    r"(?:[Nn]o such|[Nn]ot found|[Cc]annot |[Cc]ould not |[Uu]nable to |[Ff]ailed |denied|[Ii]nvalid )",
    rf": {_ERRNO}(?:\W{{0,3}}$| \()",
    r"^[^\s:]{1,200}: line \d{1,6}: ",  # a shell, of a line of its script
    r"^\[?[EF]\d{4} \d\d:\d\d:\d\d",  # glog
    r"^\S{1,200}: (?:(?:extra|missing) operand\b|(?:invalid|unrecognized|unknown) option -)",  # GNU
    r"^test \S{1,160} \.\.\. FAILED$|^Host key verification failed|^(?:ssh|kex)_exchange_identification: ",
    r"\bwas (?:built|compiled) (?:using|with|against) .{1,200}, but you are using ",
    r"^E {3,}\S|^timeout: sending signal|^\*\*\* .{1,60} detected \*\*\*|\bNCCL (?:WARN|failure)\b",
    r"(?:^|\s)(?i:error) \d{2,}\s?:|\blevel=(?:error|fatal|critical)\b",
    r"^\W{0,4}(?:FAILED|Failed|failed|panicked|panic:)\b",
    r"^\d+/\d+ Test +#\d+: .{1,200}\*\*\*(?:Failed|Exception|Timeout|Not Run)",  # ctest
    r"^thread '.{1,100}'(?: \(\d+\))? panicked|: Kommando nicht gefunden|permission denied",
    r"^(?:\S{0,200}/)?(?:ld|ld\.\w{2,4}|collect2|as|ar|cc1plus|cc1)(?:\.exe)?: "
    r"(?!.*in function .{1,300}:$|creating )",
)
# A word that is mostly in an error, anywhere in a sentence.
_SOFT: Final = re.compile(
    r"^(?:Could not|Cannot|Can't|Couldn't|Unable to|Failure|Aborted|Terminated|Killed)\b"
    r"|\b(?i:exceed(?:ed|s)|timed out|killed|cancell?ed|aborted|evicted|preempted|rejected|refused"
    r"|oom[-_ ]?kill\w*|(?:is|was|been|being) terminated|out of (?:memory|space)|unreachable|corrupt(?:ed)?"
    r"|please install|(?:must|needs? to) be installed|being installed|not found in the pkg-config search path"
    r"|mismatch|unsatisfiable|SIG(?:TERM|KILL|SEGV|ABRT|BUS)"
    r"|access (?:fault|violation)|crashed|unbound variable|exhausted|interrupted|over its \w{1,20} quota)\b"
    r"|\b(?:exit(?:ed)? (?:code|status|with)|returned|status) (?!0\b)\d{1,3}\b.{0,20}$"
    r"|\b(?:rc|status|exit_?code|returncode)\s?[=:]\s?[1-9]\d{0,2}\b"
    r"|\b(?:is|are) not (?:installed|recognized|supported|permitted|allowed|authorized|on PATH|in PATH)\b"
)
# A program that started another reports its failure; the error is in another line.
_EXITED: Final = re.compile(
    r"\b(?:fail(?:ed|ure)|exit(?:ed|s)?|return(?:ed|s)?|stopped|errored)\b.{0,60}"
    r"\b(?:exit |return |status )?(?:code|status)\b|returned non-zero"
    r"|did not (?:complete|run) successfully|failed to run custom build command|test failed, to rerun"
    r"|^(?:mpirun|prterun|mpiexec) (?:detected|has exited|noticed) |[Bb]uild backend returned"
    r"|^[×├╰]|\bProcessError: |^\W*(?:\w+ ){0,3}(?i:errors?) ?:$"
)
# Words of a sentence about a problem; used only for the last lines of a log that does not end in order.
_NEGATIVE: Final = re.compile(
    r"(?i:\b(?:not|never|cannot|must|fail\w*|errors?|faults?|wrong|lost|stopped|deadline|limit|maximum|low on"
    r"|expired|closed|denied|incorrect|abort\w*|signal|terminat\w+|preempt\w*|refused|crash\w*|kill\w*|corrupt\w*"
    r"|disconnected|gone|disappeared|panic\w*"
    r"|un(?:able|expected|known|supported|available|recognized|resolved|authorized)|conflict\w*|truncated|timeout"
    # "the required packages" says nothing of whether they are there
    r"|in(?:valid|sufficient|compatible|complete)|forbidden|missing|(?<!the )(?<!all )(?<!any )required"
    r"|broken|dead|illegal|overflow)\b|n't\b)"
    # These mostly report what went wrong.
    r"|^(?:sed|g?awk|mawk|grep|find|xargs|cp|mv|rm|ln|install|mkdir|chmod|chown|g?unzip|gzip|xz|zstd|jq|rsync"
    r"|scp|ssh|touch|dd|cat|perl|bc|expr|dash|ksh|zsh): \S"
)
# A file's name may contain a word for an error.
_FILE: Final = re.compile(r"(?<!\S)[\w./\\+-]{1,200}\.(?:[chso]|cc|cpp|cu|cuh|hpp|obj|py|rs|log|txt)(?!\S)")
# Options, such as -Wno-error=format: torch.__config__.show() prints them, too.
_OPTION: Final = re.compile(r"(?<![^\s=])--?[A-Za-z][\w.=+:/,-]*")
# No error, though it has a word for one.
_MILD: Final = any_of(
    r"(?<![/.\w-])(?i:warning(?! {2,}\w+ {2,})|note|remark|hint|info|debug|deprecat\w+)(?![/.\w-])",
    r"^\[W\d{0,4}[\s:]",  # glog
    r"\b(?i:skipp\w+|ignor\w+|optional|disabl\w+|fall(?:ing)? ?back|continu\w+|proceed\w*)\b",
    r"\b(?i:looking in (?:remotes|indexes|links))\b",
    r"^(?:Searching|Looking) for .{1,80}\b(?:[Dd]idn't|[Dd]id not|[Nn]ot) f(?:i|ou)nd in (?!any|all)",
    r"^Vulnerability [A-Z][\w ./()-]{1,60}:\s",  # lscpu
    r"\bCould not collect$",  # torch's collect_env
    r"^The item was not found\.$",  # CMake's --debug-find
    # Says where an error, if there is one, is to be reported, or what to do then.
    r"^(?!.*(?i:error\s?[:!(]|fatal|exception|fail|could not|cannot|unable))(?:.*\b)?"
    r"(?i:(?:please|kindly|and|to|can|should) (?:also )?(?:submit|report|send|attach|include|paste|file)\b"
    r".{0,80}\b(?:errors?|bugs?|issues?|problems?|tracebacks?|crash\w*)\b)",
    r"^\W*(?i:if|in case|when(?:ever)?|should|for) (?i:you |there |this |it |any |of |an? )(?:\w+ ){0,3}?"
    r"(?i:errors?|problems?|issues?|fails?|crash\w*|failures?)\b",
    # Announces what follows.
    r"^\w.{0,80}\b(?i:g[eo]t(?:ting)?|see|me?et|follow(?:s|ing)|this|these|same|shows?|encounter(?:ed)?|with)"
    r" (?:\w+ ){0,3}(?i:errors?|messages?|logs?)\W{0,2}:$",
    r"^\d* *\| |^#(?: |$)",
    r"\b(?i:cache (?:hits?|misses|errors))\b\W{0,4}\d",  # statistics of ccache and sccache
    r"^(?i:cache|compil\w+|preprocess\w+|(?:un|non-)\w+|forced|average|could not use|failed dist\w+)\b"
    r"[\w ()/+.-]{0,50}:?\s{2,}\d[\d.,]*(?: ?(?:%|s|[kMG]i?B)| ?/ {0,8}\d+ \([ \d.]{1,8}%\))?$",
)


def without_zeros(text: str) -> str:
    """Return a line without its counts of zero, and without what says that something is no error."""
    return _NOTHING.sub("", text)


def is_loud(text: str) -> bool:
    """Return whether a line has the form of an error."""
    return _LOUD.search(text) is not None


def is_report(text: str) -> bool:
    """Return whether a line reports that a program has failed, which has said why itself."""
    return _EXITED.search(text) is not None


def is_mild(text: str) -> bool:
    """Return whether a line says of itself that it is a warning, or in the way of success."""
    return _MILD.search(text) is not None


def weigh(text: str) -> int:
    """Return how much a line sounds like an error: 2, 1 or not at all (0)."""
    if is_mild(text):
        return 0
    if is_report(text):
        return 1
    return 2 if is_loud(text) else int(_SOFT.search(text) is not None)


def has_bad_words(text: str) -> bool:
    """Return whether a sentence speaks of a problem, apart from the names of files and options."""
    return _NEGATIVE.search(_OPTION.sub("-", _FILE.sub("", text))) is not None
