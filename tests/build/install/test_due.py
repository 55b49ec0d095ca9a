"""What two looks at what is in place ask for."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.build.install.due import Due, Folder, Snapshot, find_due, why_front_end
from torchbuild_tasks.values import replace

BEFORE = Snapshot(
    installed={"/t/lib/libc10.so": (5, 1), "/t/include/a.h": (1, 1)},
    sources={"/t/build/libc10.so": (5, 1)},
    generated={"/t/torch/_C.so": (3, 1)},
    copied={"/t/functorch.so": "aa"},
    folders={
        "aten": Folder(1, ("a.cpp",), ("native",)),
        "aten/native": Folder(1, (), ()),
        "torch": Folder(1, ("x.py",), ()),
    },
)


def folders(**changed: Folder) -> Snapshot:
    return replace(BEFORE, folders={**BEFORE.folders, **changed})


def test_nothing_changed() -> None:
    assert find_due(BEFORE, BEFORE, lists_modules=True) == Due()
    assert why_front_end(BEFORE, BEFORE, lists_modules=True) == ""


@each_case(
    ("now", "part", "told"),
    [
        (replace(BEFORE, generated={}), "front_end", "/t/torch/_C.so is gone"),
        (replace(BEFORE, generated={"/t/torch/_C.so": (3, 2)}), "front_end", "as the front end left it"),
        (replace(BEFORE, installed={"/t/include/a.h": (1, 1)}), "install", "/t/lib/libc10.so is gone"),
        (replace(BEFORE, installed={**BEFORE.installed, "/t/include/a.h": (2, 1)}), "install", "as it was"),
        (replace(BEFORE, sources={"/t/build/libc10.so": (5, 9)}), "install", "when it was installed"),
        (replace(BEFORE, sources={**BEFORE.sources, "/t/new.h": (1, 1)}), "install", "/t/new.h is new"),
        (folders(aten=Folder(2, ("a.cpp", "b.cpp"), ("native",))), "cmake", "aten/b.cpp is new or gone"),
        (folders(aten=Folder(2, (), ("native",))), "cmake", "aten/a.cpp is new or gone"),
        (folders(**{"aten/native/x": Folder(2, ("k.cu",), ())}), "cmake", "aten/native/x/k.cu"),
    ],
)
def test_one_change_asks_for_one_thing(now: Snapshot, part: str, told: str) -> None:
    found = find_due(BEFORE, now, lists_modules=False)
    assert told in getattr(found, part)
    assert sum(map(bool, (found.front_end, found.cmake, found.install))) == 1


def test_a_folder_that_an_editor_touched_asks_for_nothing() -> None:
    assert find_due(BEFORE, folders(aten=Folder(7, ("a.cpp",), ("native",))), lists_modules=True) == Due()


def test_python_files_matter_where_modules_are_listed_and_only_when_they_go() -> None:
    gone = folders(torch=Folder(2, (), ()))
    assert "torch/x.py is gone" in find_due(BEFORE, gone, lists_modules=True).front_end
    assert find_due(BEFORE, gone, lists_modules=False) == Due()
    assert find_due(BEFORE, folders(torch=Folder(2, ("x.py", "y.py"), ())), lists_modules=True) == Due()


def test_what_is_left_for_the_front_end() -> None:
    other = replace(BEFORE, copied={"/t/functorch.so": "bb"})
    assert "/t/functorch.so" in why_front_end(BEFORE, other, lists_modules=False)
    fewer = replace(BEFORE, installed={"/t/lib/libc10.so": (6, 2)})
    assert "/t/include/a.h is installed no longer" in why_front_end(BEFORE, fewer, lists_modules=True)
    assert why_front_end(BEFORE, fewer, lists_modules=False) == ""
    more = replace(BEFORE, installed={**BEFORE.installed, "/t/_D.so": (1, 1)})
    assert "/t/_D.so is a new module" in why_front_end(BEFORE, more, lists_modules=True)
    header = replace(BEFORE, installed={**BEFORE.installed, "/t/include/b.h": (1, 1)})
    assert why_front_end(BEFORE, header, lists_modules=True) == ""
