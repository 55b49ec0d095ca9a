"""A Windows job object, which contains all descendants of a process, so that they can be ended.

Facts: learn.microsoft.com/windows/win32/procthread/job-objects. No process may break out
of this job, a detached one neither. As long as we hold it, the end of our own process,
however it comes, ends the job.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import time
from ctypes import wintypes
from typing import Any, Final

_BREAK: Final = 1  # CTRL_BREAK_EVENT
_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_PIDS: Final = 3  # JobObjectBasicProcessIdList
_KILL_ON_CLOSE: Final = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
# https://learn.microsoft.com/windows/win32/procthread/process-security-and-access-rights
_ACCESS: Final = 0x0100 | 0x0800 | 0x0001  # PROCESS_SET_QUOTA, _SUSPEND_RESUME, _TERMINATE
_KILLED: Final = 1  # the exit code of a killed process


class _Basic(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _Extended(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _Basic),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("MemoryLimits", ctypes.c_size_t * 4),
    )


class _Pids(ctypes.Structure):
    """JOBOBJECT_BASIC_PROCESS_ID_LIST with a limited number of entries."""

    _fields_ = (
        ("NumberOfAssignedProcesses", wintypes.DWORD),
        ("NumberOfProcessIdsInList", wintypes.DWORD),
        ("ProcessIdList", ctypes.c_size_t * 1024),
    )


class Job:
    """A new, empty job. Raises OSError if the system refuses one."""

    def __init__(self) -> None:
        self._handle: int | None = _require(_kernel32().CreateJobObjectW(None, None))
        if not self._limit(_KILL_ON_CLOSE):
            self._close()
            raise _error()

    def add(self, process: int) -> None:
        """Add a process by its handle; its later children are included."""
        _require(_kernel32().AssignProcessToJobObject(self._handle, process))

    def end(self, grace: float) -> tuple[int, ...]:
        """Wait `grace` seconds for all to end, then kill; return the pids alive two seconds later."""
        if self._wait_for_members(grace):
            _kernel32().TerminateJobObject(self._handle, _KILLED)
        remaining = self._wait_for_members(2.0)
        self._close()
        return remaining

    def release(self) -> None:
        """Let remaining processes, such as a compiler cache's server, outlive us."""
        if self._handle is not None and self._limit(0):
            self._close()

    def _wait_for_members(self, seconds: float) -> tuple[int, ...]:
        deadline = time.monotonic() + seconds
        while (pids := self.members()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return pids

    def members(self) -> tuple[int, ...]:
        if self._handle is None:
            return ()
        listed = _Pids()
        _kernel32().QueryInformationJobObject(
            self._handle, _PIDS, ctypes.byref(listed), ctypes.sizeof(listed), None
        )
        return tuple(listed.ProcessIdList[: listed.NumberOfProcessIdsInList])

    def _limit(self, flags: int) -> bool:
        limits = _Extended()
        limits.BasicLimitInformation.LimitFlags = flags
        size = ctypes.sizeof(limits)
        return bool(_kernel32().SetInformationJobObject(self._handle, _LIMITS, ctypes.byref(limits), size))

    def _close(self) -> None:
        _kernel32().CloseHandle(self._handle)
        self._handle = None


def adopt(pid: int) -> Job | None:
    """Put a suspended process in a job of its own, and resume it.

    None when the system refuses the job (one in a job could have no other before
    Windows 8). Raises OSError when the process cannot be made to run.
    """
    process = _require(_kernel32().OpenProcess(_ACCESS, False, pid))
    try:
        job = _job_of(process)
        _resume(process)
        return job
    finally:
        _kernel32().CloseHandle(process)


def _job_of(process: int) -> Job | None:
    try:
        job = Job()
    except OSError:
        return None
    try:
        job.add(process)
    except OSError:
        job.release()
        return None
    return job


def ask(pid: int) -> bool:
    """Send Ctrl-Break to the group of a process; false without a console.

    Not os.kill: where this fails, that kills the process at once.
    """
    return bool(_kernel32().GenerateConsoleCtrlEvent(_BREAK, pid))


def _resume(process: int) -> None:
    """Resume the process, whose only thread's handle Popen has closed."""
    if sys.platform == "win32":
        resume = ctypes.WinDLL("ntdll").NtResumeProcess
        resume.argtypes = (wintypes.HANDLE,)
        if status := resume(process):
            raise OSError(f"it was started, but cannot be made to run (status {status:#x})")


@functools.cache
def _kernel32() -> Any:
    if sys.platform != "win32":
        raise OSError("only Windows has job objects")
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateJobObjectW.restype = kernel32.OpenProcess.restype = wintypes.HANDLE
    kernel32.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
    kernel32.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
    kernel32.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
    kernel32.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
    about = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
    kernel32.SetInformationJobObject.argtypes = about
    kernel32.QueryInformationJobObject.argtypes = (*about, ctypes.c_void_p)
    kernel32.GenerateConsoleCtrlEvent.argtypes = (wintypes.DWORD, wintypes.DWORD)
    kernel32.CloseHandle.argtypes = (wintypes.HANDLE,)
    return kernel32


def _require(result: Any) -> Any:
    if not result:
        raise _error()
    return result


def _error() -> OSError:
    if sys.platform == "win32":
        return ctypes.WinError(ctypes.get_last_error())
    return OSError("only Windows has job objects")
