"""Find the first real error of a log, read once, line by line, in constant memory.

`LogScanner` is fed a log of any length and keeps the block of lines of its first error: the lines
before it, the error itself, and those after it.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.block import GOES_WITHOUT, Block, ErrorBlock, Line
from torchbuild_tasks.features.diagnosis.decode import Decoder, clean
from torchbuild_tasks.features.diagnosis.origin import Origin
from torchbuild_tasks.features.diagnosis.others import Others
from torchbuild_tasks.features.diagnosis.places import SIGNS, Places, signs_of

LAST: Final = 12
_ADJACENT: Final = 2
# Where CMake reports that a program which it called failed, that has spoken before.
_CALLS: Final = re.compile(r"\(execute_process\):")
_CARET: Final = re.compile(r" *\^[~^]*$")  # a compiler, of the source in the line above
# What is an error only at the end of a log: Git's message, and the source of an exception that was cut off.
_ENDED: Final = re.compile(r"\s*(?:fatal: not a git repository \(or any|raise \w{1,80}\([rfb]{0,2}[\"'].{8})")
_WARNS: Final = re.compile(r".{0,60}\bWARN(?:ING)?\b")  # a logger, whose levels `clean` takes away
_FAR: Final = 40  # lines after which a complaint that nothing came of is forgotten
_PLACE: Final = re.compile(r' *File ".{1,300}", line \d+')
# So far into a log the first signs and the plain text of every row are looked for as well: an excerpt holds
# perhaps only that, and CMake runs at the start. Later on it would cost many times as much.
_AT_FIRST: Final = 8 * 1024 * 1024
# Python's line below an exception from which another one was raised.
_CHAINED: Final = re.compile(r"The above exception was the direct cause of the following")


class LogScanner:
    """Search a log, fed in blocks of lines; `found` is the answer so far.

    `no_gpu` is a warning that tells why there is no GPU, whatever error comes of that.

    Args:
        book: the rows; a line that one of them knows is an error too, or a warning (`warned`).
        before: what stands before every line of this log, and is not a part of it.
        places: folders of this machine, which show that the log is of it.
    """

    def __init__(
        self, book: FailureBook, before: re.Pattern[str] | None = None, places: Sequence[str] = ()
    ) -> None:
        self._book = book
        self.before: Final = before
        self._signs = signs_of(book.anchors)
        self.origin = Origin(places)
        self.others = Others()
        self._seen = 0
        self._decode = Decoder()
        self._number = 0
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=LAST)
        self._block: Block | None = None  # being read
        self._proof: Block | None = None
        self._suspect: Block | None = None
        self._traced: Block | None = None  # an error after which a script ran its next command
        self._complaint: Line | None = None  # the first that looks like an error since the build went on
        self._dropped: Block | None = None
        self._dropped_in_build = False
        self._weak: Block | None = None
        self._sticky: Block | None = None  # a line of CMake that the end of configuring settles
        self._hint: Block | None = None  # reports a failure whose error comes later
        self._cited: Block | None = None  # an exception that a warning has in its text
        self._passed: Block | None = None  # the last error after which other output went on
        self._earlier: ErrorBlock | None = None  # the error of an attempt that was made again
        self._in_pip = self._in_trial = self._configured = False
        self._target = ""  # what could not be made; it is made again in another attempt
        self._failed_make = ""  # the level of the make that failed last, "0" for the outermost
        self._tried = 0  # the last line of a trial of CMake
        self.no_gpu: Line | None = None  # torch's first warning with the reason why it has no GPU
        self._before_step: Block | None = None  # an error before the step of pip that is being read
        self._warned: dict[str, tuple[FailureRow, str]] = {}

    @property
    def found(self) -> ErrorBlock | None:
        """Return the first proven error, or the first that was not followed by a build in order.

        Of several attempts the last one counts, and where it fails alike the first.
        """
        now, before = self._found_now(), self._earlier
        other = now is not None and now.kind != before.kind if before is not None else True
        if before is None or (now is not None and other and (before.weak or not now.weak)):
            return now
        return before if now is not None or not self._ended_in_order() else None

    def _found_now(self) -> ErrorBlock | None:
        self._demote()
        if self._proof is not None:
            return self._telling_block(self._proof).result()
        here = (self._suspect, self._weak)
        suspects = (block for block in here if block is not None and not self._was_caught(block))
        others = [block for block in (self._outlived_error(), *suspects) if block is not None]
        open_complaint = self._open_complaint() if self._hint is None or self._complaint is not None else None
        later = (
            open_complaint
            if self._hint and open_complaint and open_complaint.last_number > self._hint.last_number
            else None
        )
        last_resort = self._sticky or later or self._open_hint() or self._traced or open_complaint
        # A marker without an error before it refers to one after it.
        first = min(
            others, key=lambda block: (block.only_reports_failure, block.last_number), default=last_resort
        )
        if first is not None and first.is_cut:  # the exception may be one that was passed over before
            raised = self._passed is not None and self._passed.kind == "python"
            first = self._cited or (self._passed if raised else None) or first
        return first.result() if first else None

    def _open_hint(self) -> Block | None:
        """Return what reported a failure; a warning is none where the program ended in order."""
        warns = self._hint is not None and patterns.WARNED.search(self._hint.lines[0].text) is not None
        return None if warns and self._ended_in_order() else self._hint

    @property
    def proven(self) -> ErrorBlock | None:
        """Return the first proven error, to which later lines add at most its own last ones."""
        return self._telling_block(self._proof).result() if self._proof is not None else None

    def _telling_block(self, proof: Block) -> Block:
        """Return the block of a failure, or of the error before it where it only reports that one exists."""
        if self._dropped is not None and self._dropped_in_build and proof.names_no_error:
            return self._dropped
        near = self._passed is not None and proof.lines[0].number - self._passed.last_number <= _FAR
        return self._passed if self._passed and near and (proof.names_no_error or proof.follows) else proof

    def _was_caught(self, block: Block) -> bool:
        """Return whether the program that raised an exception went on, for long or to success, in order."""
        if block.shape != "python" or not self._ended_in_order():
            return False
        after = [self._line(*recent).text.strip() for recent in self._recent if recent[0] > block.last_number]
        far = self._number - block.result().error.number > LAST
        went_on = far or any(patterns.ended_well(line) for line in after)
        return went_on and not any(patterns.complaint(line) for line in after)

    def _ended_in_order(self) -> bool:
        """Return whether the last line that is no command ends a step in order."""
        lines = [
            line.strip() for line in self.last if line.strip() and not patterns.QUIET.match(line.strip())
        ]
        well = any(patterns.ended_well(line) for line in lines)
        ends = (line for line in reversed(lines) if patterns.ends(line) or not patterns.is_command(line))
        last = next(ends, "")
        return not patterns.is_negative(last) and (well or patterns.ends(last))

    def _outlived_error(self) -> Block | None:
        """Return an error after which the build went on, if the log does not show that it ended well."""
        if self._dropped is None or not self._dropped_in_build:
            return None
        return None if any(patterns.ended_well(line) for line in self.last) else self._dropped

    def _open_complaint(self) -> Block | None:
        """Return a complaint after which the log neither goes on nor ends in order."""
        recent = (each for each in self._recent if each[0] > self._tried)
        lines = [self._line(*each) for each in recent if each[1].strip()]
        if any(patterns.TRIAL.search(line.text) for line in lines):
            return None
        well = max((line.number for line in lines if patterns.ended_well(line.text)), default=0)
        lines = [line for line in lines if line.number > well]
        complaint = self._loudest(lines)
        if well:  # as what is loudest may come after [100/100]
            complaint = complaint if self._loudness(complaint) > 1 else None
        else:
            complaint = complaint or self._last_words(lines)
        if complaint is None:
            return None
        block = Block(
            "words",
            [complaint, *(line for line in lines if line.number > complaint.number)],
            "words",
            weak=True,
        )
        block.name_error(complaint)
        return block

    def _loudest(self, lines: Sequence[Line]) -> Line | None:
        """Return the first of the lines that look most like an error since the log was in order."""
        on = max((line.number for line in lines if _in_order(line.text.strip())), default=0)
        first = [self._complaint] if self._complaint is not None and lines else []
        complaints = [line for line in (*first, *lines) if line.number > on and self._loudness(line)]
        return max(complaints, key=self._loudness, default=None)

    def _last_words(self, lines: Sequence[Line]) -> Line | None:
        """Return the first of the last lines that does not sound like an end in order; warnings come last."""
        on = max((index for index, line in enumerate(lines) if _in_order(line.text.strip())), default=-1)
        last = [line for line in lines[on + 1 :] if not self._is_warning(line)]
        quoted = [line for line, below in itertools.pairwise(last) if _CARET.match(below.text)]
        messages = (line for line in last if not (line in quoted or patterns.is_command(line.text.strip())))
        if last and _ENDED.match(last[-1].text):
            return last[-1]
        bad = (line for line in messages if patterns.is_negative(line.text.strip()))
        return min(bad, key=lambda line: _WARNS.match(line.raw) is not None, default=None)

    def _loudness(self, line: Line | None) -> int:
        loud = patterns.complaint(line.text.strip()) if line is not None else 0
        return loud if line is not None and loud and not self._is_warning(line) else 0

    def _is_warning(self, line: Line) -> bool:
        """Return whether a row knows this line as a warning, or it stands in one of CMake's or Python's."""
        known = any(line.text.strip() == text for _, text in self._warned.values())
        if known or self._is_of_commit(line) or GOES_WITHOUT.search(line.text):
            return True
        head = self._head(line)
        if line.text.startswith("  "):
            return re.match(r"CMake (?:(?:\w+ )?Warning|Debug Log)", head) is not None
        return head.startswith("Exception ignored in")

    def _is_of_commit(self, line: Line) -> bool:
        """Return whether a line is of a commit's message, as git log shows it."""
        return line.text.startswith("    ") and patterns.OF_COMMIT.match(self._head(line)) is not None

    def _head(self, line: Line) -> str:
        """Return the last line above that is neither indented nor the first of a traceback."""
        above = (self._line(*recent).text for recent in reversed(self._recent) if recent[0] < line.number)
        quoted = (" ", "Traceback ")
        return next((text for text in above if text.strip() and not text.startswith(quoted)), "")

    @property
    def status_line(self) -> str:
        """Return a status line of CMake that a row takes for an error; "" when configuring ended well."""
        return self._sticky.result().error.text if self._sticky else ""

    @property
    def warned(self) -> tuple[tuple[FailureRow, str], ...]:
        """Return the rows for warnings that were met, each with the first line that it knows."""
        return tuple(self._warned.values())

    @property
    def last(self) -> tuple[str, ...]:
        """Return the last lines, for a log in which nothing was found."""
        return tuple(self._line(*recent).text for recent in self._recent)

    def of_part(self, number: int, before: re.Pattern[str] | None) -> LogScanner:
        """Return a search in a part of this log, whose first line has this number."""
        part = LogScanner(self._book, before or self.before)
        part.origin, part._number = self.origin, number - 1
        return part

    def skip_block(self, block: bytes) -> None:
        """Count the lines of a block without searching it."""
        self._number += block.count(b"\n")

    def feed_block(self, block: bytes) -> None:
        """Search many lines at once; each ends with a newline."""
        block = block.replace(b"\0", b"")  # two bytes a character, in the midst of a log of one
        self.origin.feed_block(block, at_first=self._seen < _AT_FIRST)
        self.others.feed_block(block, self._number + 1)
        signs = self._signs if self._seen < _AT_FIRST else self._signs[: len(SIGNS)]
        self._seen += len(block)
        at = 0
        places = Places(block, signs)
        while at < len(block):
            if self._block is None and (
                self._proof or not (self._suspect or self._complaint or self._traced)
            ):
                again = patterns.again_after(block, at, self._target) if self._proof else None
                start = places.line_after(at) if again is None else again
                self._pass_over(block, at, start)
                at = start
                if at == len(block):
                    return
            end = block.index(b"\n", at)
            self.feed(block[at:end])
            at = end + 1

    def _pass_over(self, block: bytes, start: int, end: int) -> None:
        if start == end:
            return
        number = self._number + block.count(b"\n", start, end)
        tail = _last_lines(block, start, end)
        self._recent.extend((number - len(tail) + index + 1, line) for index, line in enumerate(tail))
        self._number = number

    def feed(self, raw: bytes) -> None:
        """Search the next line, given without its end."""
        self._number += 1
        if self._proof is not None and self._block is None:
            self._try_again(self._line(self._number, raw).text)
        else:
            line = self._line(self._number, raw)
            if self._block is None or not self._block.add(line):
                self._close()
                if self._proof is None:
                    if self._complaint is not None and line.number > self._complaint.number + _FAR:
                        self._complaint = None
                    if not (self._is_of_commit(line) or self._is_over_with(line)):
                        self._judge(line, line.text.strip())
        self._recent.append((self._number, raw))

    def _is_over_with(self, line: Line) -> bool:
        """Return whether the program goes on another way, or tries again: what comes then decides."""
        if not (self._suspect or self._weak):
            return False
        return self._try_again(line.text) or (self._goes_another_way(line) and self._begin_anew())

    def _goes_another_way(self, line: Line) -> bool:
        """Return whether a tool's error is passed over, or what was announced above it comes again."""
        failed = self._suspect
        if failed is None or self._dropped is not None:
            return False
        near = line.number - failed.last_number <= _ADJACENT
        return failed.is_repeated(line.text) or (near and failed.is_passed_over(line.text))

    def _outlives_make(self, text: str) -> bool:
        """Return whether the make that failed is ignored by its caller, or another starts or makes it."""
        if self._target and patterns.STATUS.match(text) and self._target in text:
            return True
        self._target = self._target or patterns.failed_target(text)
        if failed := patterns.MAKE_FAILED.match(text):
            self._failed_make = failed[1] or "0"
        if patterns.IGNORED.match(text):
            return self._failed_make not in ("", "0")
        return self._failed_make == "0" and patterns.MAKE_STARTS.match(text) is not None

    def _try_again(self, text: str) -> bool:
        """Return whether another attempt begins; the error of this one is noted, and the next one read.

        After a service has reported that its step failed, only logs and files are sent again.
        """
        if self._proof is not None and self._proof.kind == "cmake":  # one that fails does not come so far
            self._configured = self._configured or patterns.CONFIGURED.match(text) is not None
            if self._configured and patterns.GENERATED.match(text) and not self._proof.is_moved_from(text):
                return self._begin_anew()
        if self._outlives_make(text):
            return self._begin_anew()
        if not patterns.begins_again(text) or any(patterns.is_over(line.strip()) for line in self.last):
            return False
        return self._begin_anew()

    def _begin_anew(self) -> bool:
        """Note the error of the attempt that is over, and read the next one."""
        self._earlier = self._earlier or self._found_now()
        self._proof = self._suspect = self._weak = self._dropped = self._complaint = self._hint = None
        self._dropped_in_build = self._in_pip = self._configured = False
        self._failed_make = self._target = ""
        return True

    def _line(self, number: int, raw: bytes) -> Line:
        text = self._decode(raw)
        return Line(number, text.rstrip("\r"), clean(text, self.before))

    def _close(self) -> None:
        """End the block."""
        if self._block is not None:
            self._demote()
            block, self._block = self._block, None
            self._tried = block.last_number if self._in_trial else self._tried
            if block is self._proof and block.follows and self._telling_block(block) is block:
                self._hint, self._proof = self._hint or block, None  # its error comes later

    def _demote(self) -> None:
        """Take an exception that only repeats a failure below it for a marker, and no suspect."""
        block = self._suspect
        if block is None or block.shape != "python":
            return
        if not patterns.is_marker(block.result().error.text.strip()):
            return
        block.weak, self._suspect = True, None
        self._weak = self._weak or block
        self._proof = self._proof or self._culprit()

    def _judge(self, line: Line, text: str) -> None:
        shape = patterns.proof(text)
        if patterns.TRIAL.search(text) and shape != "cmake":
            self._try(line, shape)
        elif self._in_trial and text.startswith("ninja: build stopped"):
            self._in_trial, self._tried = False, line.number
        elif shape:
            self._proof = self._block = self._prove(line, shape)
        elif patterns.PIP_BEGINS.match(text):
            self._in_pip = True
            self._hint = self._hint or Block("words", [line], "words", weak=True)
        elif self._in_pip and patterns.PIP_ENDS.match(text):
            self._end_pip()
        elif patterns.is_marker(text):
            self._mark(line)
        elif self._suspect is not None and self._was_trial(line, text):
            self._dropped, self._suspect = self._dropped or self._suspect, None
        elif patterns.goes_on(text) or patterns.TRACED.match(text):
            self._go_on(line, text)
        elif self._suspect is None and not patterns.is_command(text):
            self._take_suspect(line, text)

    def _was_trial(self, line: Line, text: str) -> bool:
        """Return whether a step of pip or a test went well that had the suspect, or a script warns of it."""
        if self._suspect is not None and self._suspect.is_logged(line):
            self._traced = self._traced or self._suspect  # counts if nothing else does
            return True
        if patterns.STEP.match(text):
            self._before_step = self._suspect
        if patterns.STEP_DONE.match(text):
            return self._suspect is not self._before_step
        if self._suspect is not None and self._suspect.is_caught(text):
            return True
        if self._suspect is None or patterns.TESTED.match(text) is None:
            return False
        of_test = patterns.OF_TEST.match(self._suspect.lines[-1].text) is not None
        return of_test or text.startswith("[") or self._suspect.kind == "python"  # googletest's [ OK ]

    def _try(self, line: Line, shape: patterns.Kind | None) -> None:
        """Read a trial of CMake, which may fail, and forget it."""
        self._suspect = None
        if shape == "ninja":
            self._in_trial = True
            self._block = Block("ninja", [line], "ninja")

    def _prove(self, line: Line, shape: patterns.Kind) -> Block:
        """Join a proof with its cause: any error before FAILED, one right before a CMake Error."""
        suspect = self._suspect
        self._target = self._target or patterns.failed_target(line.text)
        near = suspect is not None and (
            line.number - suspect.last_number <= _ADJACENT or _CALLS.search(line.text) is not None
        )
        if suspect is None or (shape == "cmake" and suspect.kind != "python" and not near):
            block = Block(shape, [line], shape)
            block.complaint = self._complaint
            if shape == "cmake":
                recent = (self._line(*each) for each in self._recent)
                block.reasons = tuple(each for each in recent if patterns.REASON.match(each.text.strip()))
            return block
        suspect.reopen(line, shape)
        return suspect

    def _mark(self, line: Line) -> None:
        """Take a line that reports a failure before it."""
        self._outlives_make(line.text)
        if culprit := self._culprit():
            self._proof = culprit
        elif self._hint is not None and self._hint.follows:
            self._proof = self._hint
        elif self._weak is None:
            lines = [self._line(*recent) for recent in self._recent]
            first = self._complaint
            if first is not None and first.number <= line.number - len(lines) - 1:
                lines.insert(0, first)
            self._weak = Block("make" if "***" in line.text else "words", [*lines, line], "words", weak=True)
            if loudest := self._loudest(lines):
                self._weak.name_error(loudest)
                self._weak.complaint = loudest

    def _culprit(self) -> Block | None:
        """Return the error that a marker refers to: that before make went on, or the last."""
        return self._dropped if self._dropped_in_build else self._suspect or self._dropped

    def _end_pip(self) -> None:
        """Take the end of the output of pip's subprocess, which has failed whatever is in between."""
        self._in_pip = False
        self._proof = self._culprit()
        lines = [self._line(*recent) for recent in self._recent if recent[1].strip()]
        if self._proof is None and self._weak is None and lines:
            self._weak = Block("words", lines, "words", weak=True)
            said = [line for line in lines if not patterns.PIP_BEGINS.match(line.text.strip())]
            if patterns.complaint((loudest := self._loudest(said) or lines[-1]).text.strip()) > 1:
                self._weak.name_error(loudest)

    def _go_on(self, line: Line, text: str) -> None:
        if patterns.TRACED.match(text) and not patterns.goes_on(text):
            self._traced, self._suspect = self._traced or self._suspect, None
            return
        self._passed = self._suspect or self._passed
        if self._suspect is not None and not self._dropped_in_build:
            built = self._suspect.kind in ("killed", "compiler", "linker")
            on = patterns.STATUS.match(text) or patterns.INSTALLS.match(text)
            self._dropped_in_build = built and on is not None
            if self._dropped is None or self._dropped_in_build:
                self._dropped = self._suspect
        self._suspect = self._complaint = self._traced = None
        if patterns.CONFIGURED.match(text):
            self._dropped = self._sticky = None
        elif text.startswith("-- "):
            known = self._is_known_error(text)
            if known and self._sticky is None:
                self._sticky = Block("words", [line], "words")

    def _take_suspect(self, line: Line, text: str) -> None:
        if _CHAINED.match(text):
            self._take_root()
            return
        if patterns.HEADING.match(text):
            self._complaint = self._complaint or line
            return
        if patterns.ANNOUNCES.search(text):
            self._hint = self._hint or Block("words", [line], "words", weak=True)
            return
        kind = patterns.cause(text)
        if self._is_mere(kind, line):
            return
        if kind is None and self._is_known_error(text) and not patterns.is_harmless(text):
            if patterns.WARNED.search(text):  # what fails later on counts more
                self._hint = self._hint or Block("words", [line], "words", weak=True)
                return
            kind = "words"
        if kind:
            within = kind == "python" and not patterns.is_traceback(text)
            leads = (self._quoted() if within else []) or self._leads()
            alone = leads or not (kind == "words" or patterns.is_headline(text))
            near = [] if alone else self._complaints_above()
            shape = "words" if within else kind
            self._suspect = self._block = Block(kind, [*leads, *near, line], shape)
            above = (self._line(*recent).text for recent in reversed(self._recent) if recent[1].strip())
            self._block.announced = patterns.attempt(next(above, ""))
            heads = [lead for lead in leads if patterns.HEADING.match(lead.text.strip())]
            reasons = (lead for lead in leads if lead not in heads and _gives_reason(lead.text.strip()))
            if first := next(iter((*near, *reasons)), None):
                self._block.name_error(first)
            self._block.complaint = self._complaint
        elif (loud := self._loudness(line)) > self._loudness(self._complaint) or (
            loud and self._complaint is not None and patterns.is_headline(self._complaint.text.strip())
        ):
            self._complaint = line

    def _is_mere(self, kind: patterns.Kind | None, line: Line) -> bool:
        """Return whether a line is an exception within a warning, which is noted, or a message of a probe."""
        if patterns.NO_GPU_AS.search(line.text):
            self.no_gpu = self.no_gpu or line
        if kind == "python" and self._is_warning(line):
            if not patterns.is_traceback(line.text.strip()):
                self._cited = self._cited or Block("python", [line], "words", weak=True)
            return True
        return kind in ("compiler", "linker") and self._is_of_trial(line.text.strip())

    def _is_of_trial(self, text: str) -> bool:
        """Return whether the command above a message is a probe of autoconf's, which may fail."""
        above = (self._line(*recent).text.strip() for recent in reversed(self._recent))
        command = next((each for each in above if patterns.is_command(each)), "")
        return patterns.TRIAL.search(command) is not None and not text.startswith("configure: ")

    def _take_root(self) -> None:
        """Take the exception that another one was raised from, where the log begins within its traceback."""
        lines = (self._line(*recent) for recent in reversed(self._recent) if recent[1].strip())
        root = next(lines, None)
        if root is not None and patterns.EXCEPTION_LINE.match(root.text):
            self._suspect = Block("python", [root], "words")

    def _complaints_above(self) -> list[Line]:
        """Return the lines above an error that look like one, too: the first since the log was in order."""
        row: list[Line] = []
        for recent in reversed(self._recent):
            line = self._line(*recent)
            if not self._loudness(line) or patterns.is_headline(line.text.strip()):
                break
            row.insert(0, line)
        first = self._complaint
        if first is not None and patterns.is_headline(first.text.strip()):
            first = None
        far = first is None or first in row or first.number < self._number - LAST
        return row if first is None or far else [first, *row]

    def _is_known_error(self, text: str) -> bool:
        """Return whether a row knows this line as an error, and note rows for warnings."""
        hit = next(iter(self._book.look_up(text)), None)
        if hit is not None and hit.row.severity == "warning":
            self._warned.setdefault(hit.row.id, (hit.row, text))
        return hit is not None and hit.row.severity == "error"

    def _leads(self) -> list[Line]:
        """Return the lines just before, if they lead up to an error."""
        leads: list[Line] = []
        for recent in reversed(self._recent):
            line = self._line(*recent)
            if not patterns.LEADS.match(line.text):
                break
            leads.insert(0, line)
        return leads

    def _quoted(self) -> list[Line]:
        """Return the places and source lines of a traceback whose first line is not in this log."""
        above = (self._line(*recent) for recent in reversed(self._recent))
        lines = list(itertools.takewhile(lambda line: line.text.startswith("  "), above))
        return lines[::-1] if any(_PLACE.match(line.text) for line in lines) else []


def _gives_reason(text: str) -> bool:
    return patterns.EXPLAINS.search(text) is not None or patterns.cause(text) is not None


def _in_order(text: str) -> bool:
    return patterns.goes_on(text) or patterns.ends(text)


def _last_lines(block: bytes, start: int, end: int) -> list[bytes]:
    """Return at most `LAST` lines of this part of a block, which ends with a newline."""
    at = end
    for _ in range(LAST + 1):
        at = block.rfind(b"\n", start, at)
        if at < 0:
            at = start - 1
            break
    return block[at + 1 : end - 1].split(b"\n")
