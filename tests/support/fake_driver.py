"""A fake libcuda.so.1 for machines without a driver, with configured answers.

FAKE_CODE is the answer of cuInit, FAKE_CUDA the CUDA it runs (13000). FAKE_AT names a function that
fails (FAKE_HOW=999, an error), hangs (FAKE_HOW=hang) or crashes (FAKE_HOW=crash). The memory that it
fills is the machine's own; with FAKE_HOW=changed what it copies back is something else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char* name, int otherwise) {
    const char* text = getenv(name);
    return text ? atoi(text) : otherwise;
}
static int at(const char* name) {
    const char *place = getenv("FAKE_AT"), *how = getenv("FAKE_HOW");
    if (!place || !how || strcmp(place, name)) return 0;
    if (!strcmp(how, "hang")) for (;;) sleep(60);
    if (!strcmp(how, "crash")) abort();
    return atoi(how);
}
int cuInit(unsigned flags) { int code = at("cuInit"); return code ? code : number("FAKE_CODE", 0); }
int cuDriverGetVersion(int* version) { *version = number("FAKE_CUDA", 13000); return 0; }
int cuDeviceGetCount(int* count) { *count = 1; return at("cuDeviceGetCount"); }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return at("cuDeviceGet"); }
int cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = &number;
    return at("cuDevicePrimaryCtxRetain");
}
int cuCtxPushCurrent_v2(void* context) { return at("cuCtxPushCurrent_v2"); }
int cuCtxPopCurrent_v2(void** context) { return at("cuCtxPopCurrent_v2"); }
int cuDevicePrimaryCtxRelease(int device) { return at("cuDevicePrimaryCtxRelease"); }
int cuMemAlloc_v2(unsigned long long* place, size_t size) {
    *place = (unsigned long long)malloc(size);
    return at("cuMemAlloc_v2");
}
int cuMemFree_v2(unsigned long long place) { free((void*)place); return at("cuMemFree_v2"); }
int cuMemsetD32_v2(unsigned long long place, unsigned value, size_t count) {
    for (size_t i = 0; i < count; ++i) ((unsigned*)place)[i] = value;
    return at("cuMemsetD32_v2");
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t size) {
    const char* how = getenv("FAKE_HOW");
    memcpy(to, (void*)from, size);
    if (how && !strcmp(how, "changed")) ((unsigned*)to)[3] ^= 4;
    return at("cuMemcpyDtoH_v2");
}
int cuGetErrorString(int code, const char** text) { *text = "an error of the fake driver"; return 0; }
int cuGetErrorName(int code, const char** text) { *text = "FAKE_ERROR"; return 0; }

/* The CUDA runtime asks for every function in this way. */
static int whatever(void) { return number("FAKE_CODE", 0); }
int cuGetProcAddress_v2(const char* name, void** place, int version, unsigned long long flags, int* status) {
    *place = !strcmp(name, "cuInit") ? (void*)cuInit
        : !strcmp(name, "cuDriverGetVersion") ? (void*)cuDriverGetVersion
        : !strcmp(name, "cuGetErrorString") ? (void*)cuGetErrorString
        : !strcmp(name, "cuGetErrorName") ? (void*)cuGetErrorName
        : !strcmp(name, "cuGetProcAddress") ? (void*)cuGetProcAddress_v2 : (void*)whatever;
    if (status) *status = 0;
    return 0;
}
int cuGetProcAddress(const char* name, void** place, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, place, version, flags, 0);
}
"""


def build(folder: Path) -> Path:
    """Compile it into `folder`, which belongs into LD_LIBRARY_PATH."""
    source = folder / "fake_driver.c"
    source.write_text(SOURCE, encoding="utf-8")
    argv = ["gcc", "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([*argv, str(source)], check=True, capture_output=True)
    return folder


def environ_with(folder: Path, environ: Mapping[str, str], **said: str | int) -> dict[str, str]:
    """An environment in which that driver is found and answers so."""
    left = {name: value for name, value in environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**left, "LD_LIBRARY_PATH": str(folder), **{name: str(value) for name, value in said.items()}}
