"""Recognise lines of a log by their text: errors, proofs of a failure, harmless lines, progress.

One line at a time, as `decode.clean` gives it. Patterns are bounded (`{0,500}`), so that a line of a megabyte
costs no more than a short one.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from torchbuild_tasks.features.diagnosis import complaints
from torchbuild_tasks.features.diagnosis.complaints import any_of
from torchbuild_tasks.features.diagnosis.decode import NUMBER

Kind = Literal["killed", "linker", "compiler", "python", "cmake", "make", "ninja", "words"]


# Sources: gcc.c and libiberty of GCC, clang's Driver, NVIDIA's messages, the kernel's log.
_KILLED: Final = any_of(
    r"Killed signal terminated",
    r"Killed \(program",
    r"[Ss]ignal 9\b",
    r"^(?:\S{1,200}: )?Killed$",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?\d+: +\d+ Killed\b",
    r"Out of memory: Killed process",
)
_LINKER: Final = any_of(
    r"undefined references? to ",
    r": multiple definition of ",
    r": cannot find -l",
    r"\bLNK[12]\d{3}\s?[:：]",
    r"ld returned \d",
    r"unresolved external",
    r"(?:lld|mold|gold|ld)(?:-link)?(?:\.exe)?: (?:(?:fatal )?error|fatal): ",
    r"(?:^|[\\/])ld(?:\.\w{2,4})?(?:\.exe)?: ?[^:]{1,300}:.{0,60}(?:syntax error|treating as linker script)",
    r"^Undefined symbols for architecture |^\"[^\"]{1,600}\", referenced from:$",
    r"nvlink (?:error|fatal) *:",
    r": error adding symbols: |: Relocations in generic ELF",
    r"DSO missing from",
    r"relocation truncated to fit",
    r"\bR_(?:X86_64|AARCH64|386|ARM|PPC64)_\w{1,30}.{0,300}-f(?:PIC|PIE|pic)",
    r"PC-relative offset overflow",
    r"file not recognized: ",
    r"^ld: (?!warning|note|\d+ duplicate|skipping |.{0,200}in function )\S",
    r"^duplicate symbol \S",
    r"(?:^|[\\/])ld(?:\.\w{2,4})?(?:\.exe)?: (?:cannot |failed to |unable to |.{0,60}out of file)",
)
_ERROR: Final = r"(?:fatal |catastrophic |internal compiler |Command line )?error(?: [A-Z#]\S{0,20}?)? ?:"
_COMPILER: Final = any_of(
    rf"^[^\s|][^|]{{0,500}}?(?::\d+|\(\d+(?:,\d+)?(?:,\d+)?(?:,\d+)?\)) ?: {_ERROR}",
    rf"^[\w.+/\\:<>-]{{1,300}} ?: {_ERROR}",
    rf"^[A-Za-z]:\\[^:|\"]{{1,300}}\\[\w.+-]{{1,60}} ?: {_ERROR}",  # a program in a folder with blanks
    r"^(?:\w{1,40} : )?(?:nvcc|ptxas|cicc|cudafe\+\+|fatbinary) (?:fatal|error) *:",
    r"^(?:error|fatal) {2,4}: ",  # cicc, ptxas and nvcc's other parts
    # NVIDIA's HPC compilers, PGI's before
    r"^(?:nvc(?:\+\+)?|nvfortran|pgcc|pgc\+\+|pgfortran)-(?:Error|Fatal)-",
    r"^(?:NVC(?:\+\+)?|NVFORTRAN|PGCC|PGC\+\+|PGFTN|PGF9[05]|F90|F77)-[SF]-\d{4}-",
    r"^LLVM ERROR: |^[\w+-]{1,40} \(LLVM option parsing\): ",
    r"^[^\s:|]{1,300}:\d+:\d+: #error ",
    r"^ptxas \S{1,300}, line \d+; (?:error|fatal) *:",
    rf"(?:^|[\s:]){NUMBER}\s?[:：]",
)
_TRACEBACK: Final = r"^(?:Traceback \(most recent call last\):|\+ Exception Group Traceback)"
_EXCEPTION: Final = r"(?:[A-Z]\w{0,80}(?:Error|Exception)|Exception): "
EXCEPTION_LINE: Final = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?::|$)")
_PYTHON: Final = any_of(
    _TRACEBACK,
    rf"^(?:E +)?(?:[A-Za-z_][\w.]{{0,100}}\.)?{_EXCEPTION}",
    # An exception whose name does not end in Error is known by its module.
    r"^(?:E +)?[A-Za-z_][\w.]{0,80}\.(?:exc|exceptions)\.(?!\w{0,60}Warning)[A-Z]\w{0,80}: \S",
)
# Behind a command of setuptools' that could not be started: the line is the error itself.
_UNSTARTED: Final = r": (?:No such file|Permission denied|Exec format|None)"
# The starts of lines that report a consequence, and no error of their own.
_NO_ERROR: Final = (
    r"(?!subprocess-exited|The build backend |builder for '|(?:ERROR: )?Failed |Could not build|metadata-gen"
    rf"|legacy-install|failed-wheel-build|command '(?!.{{1,300}}' failed{_UNSTARTED})"
    r"|Exception:$|aborting due to|linking with `|failed to run custom build"
    r"|test failed, to rerun"
    r"|\S{1,300}:\d+:\d+: \S.{0,300} failed:? \()"  # the last: bazel
)
# What argparse says for `python -m NAME`, or for a subcommand.
_OF_PARSER: Final = r"^[\w./\\-]{1,100}(?: -m)? [\w.-]{1,40}: error: \S"
_WORDS: Final = any_of(
    rf"^(?:ERROR|error|Error|fatal): {_NO_ERROR}",
    r"^Could not find .{0,300}(?:CMakeLists\.txt|third_party)",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?(?:\d+: )?\S[^ ]{0,200}: (?:command )?not found",
    r"^[\w.+/-]{1,200}: program not found or is not executable$",  # protoc, of a plugin
    r"' is not recognized as (?:an internal or external command|the name of a cmdlet)",
    r"^terminate called |^(?:wine: )?Unhandled (?:page fault|exception)\b",
    r"^\S{0,200}python[\d.]{0,6}(?:\.exe)?: No module named ",
    r"^(?:no such option|ambiguous option): -|^--[\w-]{1,40} option requires ",  # optparse
    _OF_PARSER,
    r"^(?:nox > )?Session \S{1,80} failed: \S|\bversion solving failed\.?$",
    r"^tar: (?:.{1,200}: Wrote only |This does not look like )",
    r"^(?:Segmentation fault|Illegal instruction|Bus error )",
    r"^(?:Intel MKL FATAL|INTEL MKL) ERROR|^\[lib\w{1,30} FATAL ",
    r"^OMP: Error ",
    r"^(?:[0-9a-f]{4}:)?err:module:import_dll .{1,300} not found",  # wine
    r"^qemu\S{0,30}: uncaught target signal ",
    r"^\++ Timeout \++$",  # pytest-timeout
    r"^\S{1,300}:\d+: Failure$",  # googletest
    r"^THCudaCheck FAIL|block: \[\d.{0,40}thread: \[\d.{0,40}Assertion ",  # on a GPU
    r"^={9} (?:Invalid __|Uninitialized __|.{0,20}[Rr]ace reported)",  # compute-sanitizer
    r"^CreateProcess failed: |^Python was not found; run without",
    r"cannot be loaded because running scripts is disabled",  # PowerShell
    r"^\S{1,200}\.p(?:yx|xd|xi):\d+:\d+: (?!warning)",  # Cython
    r"^Could not fetch URL .{1,200}: There was a problem",  # pip, which goes on without it
    r"^[^\s|]{1,300}:\d+:\d+: ERROR: ",  # meson
    r"^(?:/usr/bin/)?env: .{1,100}: No such file",
    r"^(?:ResolvePackageNotFound|LibMamba|Could not solve for |Encountered problems while solving)",
    r"^(?:× )?(?:No solution found|Because .{1,300} are unsatisfiable)",
    # GNU as, gfortran, rustc, protoc
    r"^(?:\{standard input\}|[^\s|]{1,300}):(?:\d+:)? (?:Fatal )?Error: ",
    r"^Fatal (?:Python )?[Ee]rror: ",
    r"^error\[E\d{4}\]: ",
    r"^[\w./-]{1,200}\.proto:\d+:\d+: (?!warning)",
    # loader, shell, network, patch, ctest, apt
    r": error while loading shared libraries: ",
    r"^(?:\w{0,8}sh: ?)?(?:[^:/.]{1,12}: ?)?[\w./+-]{1,200}: "
    r"(?:/\S{1,100}: )?(?:Permission denied|bad interpreter|cannot execute)",
    r"^(?:\w{0,8}sh: ?)[^:/.]{1,12}: [\w./+-]{1,200}\s?: command not found",
    r"^fatal: repository '|^(?:docker: )?(?:Error response from daemon: |no matching manifest for )",
    r"(?:^|\d)curl: \(\d+\) ",
    r"^[^\s:]{1,200}:\d+: \*\*\* ",  # make, of its own file
    # make, of a program; it also goes on without its own files
    r"^\S{0,60}make(?:\.exe)?(?:\[\d+\])?: (?!getcwd|chdir|(?:GNU|\S{0,99}/)?[Mm]akefile)"
    r"[\w.+/-]{1,120}: (?:No such file or directory|[Cc]ommand not found)$",
    r"^(?:ERROR|FATAL|CRITICAL)\s{1,20}\w{0,60}(?:Error|Exception)\b",
    r"^(?:Hunk #\d+ FAILED at|\d+ out of \d+ hunks? FAILED)",
    r"^E: \S",  # apt
    r"^- (?:Status code: [45]\d\d|Curl error \(\d{1,3}\).{0,120}) for \w{3,5}://",  # dnf, of a repository
    r"^\W{0,4}nothing provides \S.{0,160} needed by "  # dnf, zypper
    r"(?:the to be |\S{1,120}\.(?:x86_64|noarch|aarch64|el\d|fc\d))",
    r"^undefined symbol: \S|\bexec user process caused\b",
    r": Assertion [`'‘].{1,300}['’] failed\.?$|^Assertion failed: \(.{1,300}\), function ",  # C's assert
    r"^=+\d+=+ ?(?:ERROR|FATAL): |^\S{1,300}:\d+:\d+: runtime error: ",  # sanitizers
    r"^WARNING: Built wheel for .{1,100} is invalid",  # pip
)
_CAUSES: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("killed", _KILLED),
    ("linker", _LINKER),
    ("compiler", _COMPILER),
    ("python", _PYTHON),
    ("words", _WORDS),
)
# Lines of builds that succeed.
_HARMLESS: Final = any_of(
    r"^fatal: (?:[Nn]ot a git repository \(or any|No names found|no tag|No tags|ambiguous argument)",
    r"^ERROR: ld\.so: object .{1,300} cannot be preloaded",
    r"^ERROR: (?:pip's dependency resolver does not currently|After October 2020 you may)",
    r"^(?:ERROR: )?\S{1,80} \S{1,40} (?:has requirement|requires) .{1,200}, but you'll have ",  # old pip
    r": (?:warning|note|remark)(?: [A-Z#]\S{0,20}?)? ?: ",
    r"\bNCCL (?:INFO|TRACE)\b|^[ID]\d{4} \d\d:\d\d:\d\d",  # of NCCL, and glog
    r"^(?:warning|note|remark|WARNING(?!: Built wheel for )|CMake (?:\w+ )?Warning)\b",
    r"^(?:SKIPPED|XFAIL|PASSED)\b",
    r"^\[ *(?:RUN|OK|PASSED|FAILED|SKIPPED|-{3,}|={3,}) *\]",
    r"^(?!ERROR: not found: ).{0,400}::test_",
    r" (?:PASSED|SKIPPED|XFAIL|ok)$",
    r"^\d* *\| ",
    r"^raise \w|^-+> \d+ |^[a-z_][\w.]{0,60} = [frb]?['\"(\[]",  # quoted source
    r"^(?:ERROR: )?[Uu]sage: |^HEAD is now at "
    r"|^(?:\[[\w/.-]{1,100} (?:\([\w-]{1,20}\) )?)?[0-9a-f]{7,40}\]? \S",  # git's commits
    r"^ok \d+\b|^checking \S.{0,300}\.\.\. |They have been ignored, or old ones used",  # autoconf, apt
    r"^configure: error: in [`'].{1,300}':$",  # what is wrong comes next
    r'^wine: failed to open L".{0,60}\\rundll32\.exe"',  # a prefix that is being made
    # The reader of a pipe has closed it, as head does.
    r"^ERROR: Pipe to stdout was broken$"
    r"|\b(?:[Ww]rite error|(?:standard output|stdout)\W{0,3}): ?[Bb]roken pipe$",
    r"^debconf: (?:delaying|unable to initialize|falling)|^#\d+ CANCELED$",
)
_TOOL: Final = (
    r"(?:ccache|sccache|c\+\+|g\+\+|gcc|cc|clang(?:\+\+)?|nvcc|hipcc|cl|link|ld|ar|cmake|python\d?|ninja)"
)
# A command: its text is paths, definitions and flags.
_COMMAND: Final = any_of(
    r"^(?:\$ |\++ |cd |: && |timeout (?:-|[\d.]+[smhd]? \S)|(?:\S*-)?ar [a-zA-Z]{1,6} \S)",
    r"^\[ *\d+[/%]",
    rf"^\S*?{_TOOL}(?:-?[\d.]+)?(?:\.exe)?\"? +(?:[-/@\"]|\S{{0,300}}[./=])",
)
_MARKER: Final = any_of(
    r"^\S*make(?:\.exe)?(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)$)",
    r"^ninja: build stopped",
    r"^-- Configuring incomplete",
    r"^(?:Build FAILED\.|Fehler beim Buildvorgang|生成失败|ビルドに失敗しました)",
    r"^NMAKE : fatal error U1077",
    rf"^error: (?:command .{{1,300}} failed(?!{_UNSTARTED})|metadata-generation-failed|legacy-install-failure"
    r"|failed-wheel-build-for-install)",
    r"^(?:ERROR: ERROR|ERROR): Failed (?:building|to build)",
    r"^ERROR: (?:Could not build wheels|process \"|failed to solve)",
    r"^Failed to build ",
    r"^subprocess\.CalledProcessError: ",
    r"^\w{0,20}RuntimeError: Error (?:compiling objects|building extension)",
    r"^[\w.]{0,80}CompileError: command",
    r"^Command \".{1,300}\" failed with error code",
    r"^==> ERROR: A failure occurred",
    r"^CMake Error at \S{0,200}_generated_\S{1,200}\.cmake:\d",  # FindCUDA: nvcc's own message is above
    r"^##\[error\]",
    r"^(?:Error|ERROR): Process completed with exit code [1-9]",
    r"returned a non-zero code: [1-9]",
    r"ERROR: Job failed(?:: exit (?:code|status)| \(system)|^Finished: FAILURE",  # CI services
    r"^ERROR: script returned exit code [1-9]|(?:Bash|PowerShell|Cmd\.exe) exited with code '?[1-9]",
    r"(?:Error: The command|^The command \".{1,300}\") exited with (?:status )?[1-9]",
    r"^FAILED: Build did NOT complete",
    r"^(?:The following tests FAILED|Errors while running CTest)",
    r"^!{4,} .{1,200} !{4,}$",  # pytest was interrupted
    r"^FAILED (?:CONSISTENTLY: |\[[\d.]{1,12}s\] )?\S{1,300}::\S|^FAILED \((?:failures|errors)=",  # tests
    r"^ERROR \S{1,300}\.py(?:::\S| - |$)|^error: test failed, to rerun",
    r"^(?:=+ )?(?:\d.{0,80}, )?[1-9]\d* (?:failed|errors?)\b.{0,80} in [\d.]+s",  # pytest
)
# A make that has failed, with its level, and one that starts.
MAKE_FAILED: Final = re.compile(r"\S*make(?:\.exe)?(?:\[(\d+)\])?: \*\*\* ")
MAKE_STARTS: Final = re.compile(
    r"\S*make(?:\.exe)?: (?:'.{1,200}' is up to date|Nothing to be done|Entering directory)"
)
# What Ninja or make could not make.
_TARGET: Final = re.compile(
    r"FAILED: (?:\[code=\d+\] )?(\S{4,300}) *$"
    r"|\S*make\S{0,9}: \*\*\* \[(?:\S{1,200}:\d+: )?(\S{4,300})\] Error"
)
# What the author of a rule of make expects to fail.
IGNORED: Final = re.compile(r"\S*make(?:\.exe)?(?:\[\d+\])?: .{1,300} \(ignored\)$")
# What uv has installed or removed: conda writes of what it refuses in a similar way, and goes on behind it.
_BY_UV: Final = r"[+~-] [\w.-]{1,80}==\d\S{0,60}(?: \(.{1,300}\))?$"
_ON: Final = any_of(
    r"-- (?!Configuring incomplete)",
    r"\[(?:\d+/\d+| *\d+%)\] ",
    r"Successfully |Finished processing dependencies",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"running \w+$|building '|copying |creating ",
    r"Collecting (?!environment information)|Requirement already |Installing collected |Preparing metadata",
    r"Get:\d+ |Setting up |Unpacking |Submodule path '|#\d+ DONE \d",
    rf"(?:Installed|Prepared|Audited|Uninstalled|Resolved) \d+ packages? in |{_BY_UV}",
    r"Already up to date\.|HEAD is now at |Switched to (?:a new )?branch ",
    IGNORED.pattern,
    r"\++ (?:true|:)$",  # a shell with set -x, of a command that may fail: `|| true`
)
# What a script logs of a trial of the compiler that failed.
WARNS: Final = re.compile(r"\s*(?:\S{1,40} ){0,2}\[\s*WARN(?:ING)?\s*\]")
# A program that caught an error says what it does in place of what failed.
RESUMES: Final = re.compile(
    r"\b(?i:fall(?:ing|s)? ?back|skipp\w+|ignor\w+|continu\w+|proceed\w*|instead|without it)\b"
)
# The same said of any error; what a message advises ("use b instead", "to continue") is no such line.
_PASSED: Final = re.compile(
    r"^(?!\W*(?i:hint|help|tip|info|to)\b).*\b(?i:fall(?:ing|s|en)? ?back|skipp(?:ed|ing)|ignor(?:ed|ing)"
    r"|(?:continu|proceed|carry|go|mov)ing (?:on|with|without|anyway)"
    r"|(?:using|trying|taking) .{1,80} instead)\b"
)
# Only in logs of success: `make -k` also reaches [100%] after an error, and then install may be called.
_WELL: Final = any_of(
    r"Successfully ",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"Finished processing dependencies",
    r"\[(\d+)/\1\] ",
)
# A shell with set -x runs its next command, other than what it does last.
TRACED: Final = re.compile(
    r"\++ (?!exit |cleanup|set \+|trap |sccache |ccache |echo .{0,20}(?i:fail|error))\w"
)
# A step of pip that has begun, and one that is over in order: an error in between was a trial of setup.py.
STEP: Final = any_of(
    r" *(?:Building|Preparing|Getting|Installing|Running) .{1,200}: started$", r" *Running command "
)
STEP_DONE: Final = re.compile(
    r" *(?:Building|Preparing|Getting|Installing|Running) .{1,200}(?:with status 'done'|\.\.\. done)$"
    r"|#\d+ DONE \d"
)
# A test that did what it should, whatever it has printed.
TESTED: Final = any_of(
    r"\S{1,300}::\S.{0,300} (?:PASSED|SKIPPED|XFAIL)\b",
    r"(?:PASSED|SKIPPED) \[|(?:.{0,300} )?PASSED$",
    r".{1,300} \.\.\. ok$",
    r"OK(?: \(.{1,80}\))?$",
    r"\d+/\d+ Test +#\d+: .{1,300} Passed |\[ +OK \]",
    r"(?:=+ )?\d+ passed(?:, \d+ (?!failed|errors?\b)\w+(?: \w+)?)* in [\d.]+s|100% tests passed",
)
INSTALLS: Final = re.compile(r"-- (?:Install|Up-to-date)")
CONFIGURED: Final = re.compile(r"-- Configuring done")
GENERATED: Final = re.compile(r"-- Build files have been written to")
PIP_BEGINS: Final = any_of(
    r"(?:error|ERROR): (?:subprocess-exited-with-error|Command errored out)",
    r"╰─> \[",
    r"(?:error: |├─▶ |Caused by: )?The build backend returned an error",  # uv
)
PIP_ENDS: Final = any_of(r"\[end of output\]", r"note: This error originates from a subprocess", r"-{20,}$")
STATUS: Final = re.compile(r"\[(?:\d+/\d+| *\d+%)\] ")
# Lines of a compiler or linker before an error.
LEADS: Final = any_of(
    r"In file included",
    r"\s+from |\s*(?:So, )?(?:[Bb]ecause|[Aa]nd(?: because)?) .{1,200} (?:depends on|requires) ",
    r"\S.{0,300}: [Ii]n ",
    r".{0,300}(?:required from|instantiat)",
    r".{0,300}: cannot find -l",
    r".{0,300}(?:relocation truncated to fit|offset overflow in |DSO missing from)",
    r"\S{0,300}\bld(?:\.\w{2,4})?: (?:warning: |skipping incompatible )",
    r"\S.{0,300} ?: warning LNK4272\b",
    r"WARNING: Retrying \(Retry\(total=0",  # pip, for the last time
)
# A warning of a linker with the reason for the errors in the next lines.
EXPLAINS: Final = re.compile(
    r"\bld(?:\.\w{2,4})?: (?:warning: )?"
    r"(?:skipping incompatible \S|ignoring file \S|[^\s,]{1,200}, needed by .{1,300}, not found)"
    r"|\S.{0,300} : warning LNK4272\b"
    r"|WARNING: Retrying \(Retry\(total=0"
)
# Of these the ones that no link in order has: a file that was asked for, and not another found for it.
_LACKS: Final = re.compile(
    r"(?:\S{0,200}/)?ld(?:\.\w{2,4})?: warning: ignoring file \S.{0,400}"
    r"(?:(?:building|built) for |required architecture )"
    r"|\S.{0,300} : warning LNK4272\b"
)
# A warning of Python's, with where it was given.
WARNED: Final = re.compile(r"\b[A-Z][a-z]+Warning: ")
# What tells why there is no GPU, as torch's warning and nvidia-smi do, and what comes of that: any error that
# speaks of one, and not of what CUDA is built with.
NO_GPU_AS: Final = re.compile(r"UserWarning: CUDA initialization: |\bFailed to initialize NVML: ")
OF_GPU: Final = re.compile(
    r"(?i)^(?!.*(?:CUDA_HOME|nvcc|toolkit|compil|\bbuil[dt])).*\b(?:cuda|gpus?|nvidia|nccl|cudnn)\b"
)
# Trials of CMake, which may fail: their source or target has this in its name.
TRIAL: Final = re.compile(r"cmTC_|CMakeTmp|CMakeScratch|TryCompile-|\bconftest\.")
# It was ended from outside, and gives no reason.
INTERRUPTED: Final = re.compile(r"KeyboardInterrupt$")
# The line of C++ above the text of an exception.
THROWN: Final = re.compile(r"terminate called after throwing|terminating (?:due to|with) uncaught exception")
# What ctest -V writes before the lines of a test.
OF_TEST: Final = re.compile(r"\d+: ")
# What unittest and ctest write above the output of a failed test.
HEADING: Final = re.compile(
    r"(?:ERROR|FAIL): test\S{1,160} \("
    r"|\d+/\d+ Test +#\d+: .{1,200}\*\*\*(?:Failed|Exception|Timeout|Not Run)"
)
# An exception that announces a compiler's output, and its line above that output.
ANNOUNCES: Final = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,100}\.)?"
    r"(?:CppCompileError|BackendCompilerFailed|InductorError|PTXASError"
    r"|CompilationError|ChildFailedError)\b"
    r"|^RuntimeError: The following operation failed in the TorchScript interpreter"
)
PART: Final = re.compile(r"\S.{0,40}(?:[Oo]utput|[Cc]ommand|stderr|stdout|[Ll]og)\W?:$|(?:Output|Command):$")
# A status line of CMake with the reason of the error that follows.
REASON: Final = re.compile(r"--\s+(?:(?:No p|P)ackage '.{1,200}found|(?:Hash|HASH) mismatch)")
# What a script of CMake reports of a program that it called, whose own message is above.
FOLLOWS: Final = re.compile(
    r"Failed to clone repository|Command failed: "
    r"|(?:Build|Download|Configure|Patch|CMake) step for \S+ failed"
)
# What failed is done again, from its start.
AGAIN: Final = re.compile(
    r"\b(?i:retrying|re-trying|will retry|retry scheduled|trying again|attempt #?[2-9]\b"
    r"|attempt #?\d+ ?(?:of \d+ |/ ?\d+ )?(?:failed|with)|retry #?\d+"
    r"|(?:running|building|starting) (?:it )?again|(?:second|third|next|another) (?:try|attempt)"
    r"|re-?(?:running|building|starting) (?:\w+ )?(?:with|after)|once more)"
    r"(?! \(Retry)"
)
_SENT: Final = re.compile(r"\b(?i:upload\w*|artifacts?|sav(?:e|ing) (?:the )?cache|push(?:ing)?)\b")
_OVER: Final = any_of(
    r"^##\[error\]|^(?:Error|ERROR): (?:Process completed with exit|Job failed|script returned exit) ",
    r"^Finished: FAILURE|returned a non-zero code: [1-9]|^The command \".{1,300}\" exited with [1-9]",
    r"^Exited with code exit status [1-9]|The command exited with status [1-9]|^Post job cleanup",
)
_AGAIN_SIGNS: Final = (
    b": *** ",
    b"(ignored)",
    b"is up to date",
    b"Nothing to be done",
    b"Entering directory",
    b"-- Configuring done",
    b"-- Build files have been",
    b"etry",
    b" again",
    b"ttempt ",
    b"ttempt #",
    b"ebuilding",
    b"estarting",
    b"running with",
    b"econd try",
    b"nce more",
)
# With these a part of a build ends in order.
_ENDS: Final = any_of(
    r"Built target|Build files have been written|^-- (?:Generating done|Install|Up-to-date)|100%|^\[\+\] /",
    r"(?:^\W*|\S: )(?i:ok|okay|all good)\W*$",
    r"^\S*make(?:\[\d+\])?: (?:'.{1,200}' is up to date|Nothing to be done)|^\S*make: Leaving directory",
    # setuptools, CMake's install, Ninja, twine, Hatch, Poetry
    r"^removing build[/\\]|^adding '.{1,300}\.dist-info[/\\]RECORD'$|^copying build[/\\].{1,400} ->"
    r"|^(?:Installing|Adding|Copying) .{1,300} to (?:easy-install\.pth|/|[A-Z]:)",
    r"^-- Set (?:non-toolchain portion of )?runtime path of |^ninja: no work to do|^View at:",
    r"^(?:\W*(?:[Bb]uilt|[Cc]reated|[Ww]rote) |\S{0,200}\bdist[/\\])\S{1,200}\.(?:whl|tar\.gz)$",
    rf"^Submodule path '.{{1,300}}': (?:checked out|merged|rebased)|^{_BY_UV}",
    r"^\d+ upgraded, \d+ newly installed, \d+ to remove|\b(?:saved|written|been installed)\b|\bbuilt$",
    r"(?i:\b(?:finished|completed?|succe(?:ss|eded)\w*|done|passed|ready)\b)",
)
_NO_END: Final = re.compile(r"n't|\b(?:not|cannot)\b|\b(?i:fail)|\b[1-9]\d* errors?\b")
# What says nothing of how a step has ended.
QUIET: Final = any_of(r"\S*make\[\d+\]: Leaving directory", r"#(?: |$)", r"https?://\S+$")
# What git log and git show write above a commit's message, which is indented.
OF_COMMIT: Final = re.compile(
    r"(?:Author|Commit)Date: |Date: {3}|(?:Author|Commit|Tagger): .{0,100} <\S{0,100}>$"
)


def proof(text: str) -> Kind | None:
    """Return the kind of block that this line begins, if it is one that proves a failure."""
    if text.startswith("FAILED: ") and not text.startswith("FAILED: Build did NOT"):  # bazel's
        return "ninja"
    if text.startswith(("CMake Error at ", "CMake Error in ", "CMake Error: ", "CMake Error (dev)")):
        return None if _MARKER.match(text) else "cmake"
    if text.startswith(("ninja: error: ", "ninja: fatal: ")):
        return "words"
    return None


def cause(text: str) -> Kind | None:
    """Return the kind of error that a line names, if any."""
    text = complaints.without_zeros(text)
    if _HARMLESS.search(text):
        return None
    return next((kind for kind, pattern in _CAUSES if pattern.search(text)), None)


def is_marker(text: str) -> bool:
    """Return whether a line reports that something before it has failed."""
    return _MARKER.search(text) is not None


def goes_on(text: str) -> bool:
    """Return whether the line shows that the build continued normally."""
    return _ON.match(text) is not None


def ended_well(text: str) -> bool:
    """Return whether a line is among the last of a build that went well."""
    return _WELL.match(text.strip()) is not None


def ends(text: str) -> bool:
    """Return whether a line is among those with which what goes well ends."""
    text = complaints.without_zeros(text)
    ends_so = _ENDS.search(text) is not None and _NO_END.search(text) is None
    return ended_well(text) or ends_so or TESTED.match(text.strip()) is not None


def begins_again(text: str) -> bool:
    """Return whether a line announces another attempt."""
    return AGAIN.search(text) is not None and _SENT.search(text) is None


def resumes(text: str) -> bool:
    """Return whether a line, which is no complaint itself, says that the program goes on another way."""
    quiet = not (is_harmless(text) or complaints.is_loud(text) or is_command(text))
    return quiet and _PASSED.search(text) is not None


def attempt(text: str) -> str:
    """Return what a line announces, without numbers and the place where a file is fetched from."""
    return re.sub(r"\d+", "0", re.sub(r"\b\w+://\S*/(?=\S)", "://", text.strip()))


def is_over(text: str) -> bool:
    """Return whether a service reports that its step has finally failed."""
    return _OVER.search(text) is not None


def failed_target(text: str) -> str:
    """Return the file that Ninja or make reports as the one that it could not make."""
    found = _TARGET.match(text)
    return (found[1] or found[2]) if found else ""


def again_after(block: bytes, at: int, target: str) -> int:
    """Return the start of the first line from `at` on that may begin another attempt; else the end."""
    signs = (*_AGAIN_SIGNS, target.encode()) if target else _AGAIN_SIGNS
    met = [place for sign in signs if (place := block.find(sign, at)) >= 0]
    return block.rfind(b"\n", 0, min(met)) + 1 if met else len(block)


def complaint(text: str) -> int:
    """Return how much a line looks like an error of any program: 2, 1 or not at all (0)."""
    text = complaints.without_zeros(text)
    if is_harmless(text) or is_command(text) or re.match(r"\[\s*\d+[/%]|-- ", text):
        return 0
    return complaints.weigh(text)


def is_negative(text: str) -> bool:
    """Return whether one of the last lines of a log reports a problem."""
    text = complaints.without_zeros(text)
    mild = is_harmless(text) or complaints.is_mild(text)
    bad = complaint(text) > 0 or _LACKS.match(text) is not None
    return bad or (not mild and complaints.has_bad_words(text))


def is_headline(text: str) -> bool:
    """Return whether a line only reports that something has failed, and other lines why."""
    return HEADING.match(text) is not None or complaints.is_report(text)


def is_harmless(text: str) -> bool:
    """Return whether a line is a warning, a test's result, or usual in builds that succeed."""
    return _HARMLESS.search(text) is not None


def is_command(text: str) -> bool:
    """Return whether a line is a command rather than its output."""
    return _COMMAND.match(text) is not None and not proof(text) and not re.match(_OF_PARSER, text)


def is_traceback(text: str) -> bool:
    """Return whether a line begins a traceback of Python."""
    return re.match(_TRACEBACK, text) is not None
