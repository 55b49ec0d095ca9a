"""Notify the desktop, and the program that --notify names, when a build is over. It never fails a build."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.errors import INTERRUPTIONS
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import process

RESULT: Final = "TORCHBUILD_RESULT"
TITLE: Final = "TORCHBUILD_TITLE"
TEXT: Final = "TORCHBUILD_TEXT"
_PATIENCE: Final = 10.0  # seconds
# The text is passed in the environment, so that none of it is parsed as PowerShell. A toast needs the id
# of an installed program: PowerShell's own. UNCONFIRMED on a real Windows desktop.
_TOAST: Final = f"""
$ErrorActionPreference = 'Stop'
$manager = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications,
    ContentType = WindowsRuntime]
$template = [Windows.UI.Notifications.ToastTemplateType]::ToastText02
$toast = $manager::GetTemplateContent($template)
$lines = $toast.GetElementsByTagName('text')
[void]$lines.Item(0).AppendChild($toast.CreateTextNode($env:{TITLE}))
[void]$lines.Item(1).AppendChild($toast.CreateTextNode($env:{TEXT}))
$program = '{{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}}\\WindowsPowerShell\\v1.0\\powershell.exe'
$manager::CreateToastNotifier($program).Show($toast)
"""
# Seconds: shorter builds are not notified.
LONG: Final = 120.0


@contextlib.contextmanager
def notify_when_over(request: BuildRequest, report: Reporter, root: Path) -> Iterator[None]:
    """Notify when the body ends, also by an error; report a notification that fails."""
    began = time.monotonic()
    result = "failed"
    try:
        yield
        result = "ok"
    except INTERRUPTIONS:
        result = "interrupted"
        raise
    finally:
        seconds = time.monotonic() - began
        text = f"{root.name}: {result}"
        text += f" after {seconds / 60:.0f} min" if seconds >= LONG else ""
        if request.notify and (problem := notify_command(request.notify, result, text)):
            report.note(problem)
        if seconds >= LONG:
            notify_desktop(f"PyTorch build {result}", text)


def notify_desktop(title: str, text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Show a desktop notification; return "", or why it was not shown."""
    argv = _desktop(title, text, environ)
    return (
        _run(argv, {**environ, TITLE: title, TEXT: text}) if argv else "there is no notify-send or PowerShell"
    )


def notify_command(command: str, result: str, text: str) -> str:
    """Run the user's program with the result in its environment; return "", or what went wrong.

    Args:
        command: a program and its words, split as a shell would but run without one; on Windows the
            command line as it is.
        result: ok, failed or interrupted, as TORCHBUILD_RESULT; the text as TORCHBUILD_TEXT.
        text: one line about the build.
    """
    try:
        words = command.strip() if sys.platform == "win32" else tuple(shlex.split(command))
    except ValueError as error:
        return f"--notify {command}: {error}"
    if not words:
        return "--notify names no program"
    problem = _run(words, {**os.environ, RESULT: result, TEXT: text})
    return f"--notify {command}: {problem}" if problem else ""


def _desktop(title: str, text: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    import shutil

    path = environ.get("PATH")
    if sys.platform == "win32":
        shell = shutil.which("powershell", path=path)
        return (shell, "-NoProfile", "-NonInteractive", "-Command", _TOAST) if shell else ()
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return ()  # it could not be seen, and notify-send would wait for a D-Bus
    send = shutil.which("notify-send", path=path)
    return (send, "--app-name=torchbuild", "--", title, text) if send else ()


def _run(argv: tuple[str, ...] | str, env: Mapping[str, str]) -> str:
    captured = process.capture(argv, env=env, timeout=_PATIENCE)
    if captured.timed_out:
        return f"it took more than {_PATIENCE:g} seconds and was ended"
    if captured.rc == 0:
        return ""
    lines = captured.error_text.splitlines()
    return lines[-1] if lines else f"exit code {captured.rc}"
