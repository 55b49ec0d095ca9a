"""Merging the answers of several probes about the same GPUs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts
from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import BoardRow
from torchbuild_tasks.model import Cuda, Finding, GpuSeen, Tegra
from torchbuild_tasks.plan.cuda.archs import are_named
from torchbuild_tasks.plan.cuda.devices import (
    PROBES,
    address,
    check_devices,
    devices,
    group_answers,
    visible_devices,
    within,
)
from torchbuild_tasks.plan.cuda.values import Device
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

RTX_3090, A100, V100, SPARK, UNPUBLISHED = "10de:2204", "10de:20b0", "10de:1db1", "10de:2e12", "10de:3340"


def left_visible(question: Question) -> tuple[Device, ...]:
    return visible_devices(question, devices(question))


def checked(question: Question) -> tuple[Finding, ...]:
    return check_devices(question, devices(question), named=are_named(question))


def machine(*gpus: GpuSeen, **changes: Any) -> Question:
    """A Linux workstation on which the probes have seen this."""
    return ask(linux_facts(cuda=Cuda(gpus=gpus, **changes)), cuda=True)


def nvml(bus: str | None, name: str, capability: str | None, **changes: Any) -> GpuSeen:
    return GpuSeen(probe="nvml", bus=bus, name=name, capability=capability, **changes)


def pci(bus: str | None, pci_id: str, **changes: Any) -> GpuSeen:
    return GpuSeen(probe="pci", bus=bus, pci_id=pci_id, **changes)


def only(question: Question) -> Device:
    (device,) = devices(question)
    return device


def finding(question: Question) -> Finding:
    (one,) = checked(question)
    return one


@pytest.mark.parametrize("bus", ["00000000:01:00.0", "0000:01:00.0", "01:00.0", "0000:01:00.0 "])
def test_one_address_has_many_spellings(bus: str) -> None:
    assert address(bus) == "0000:01:00.0"


def test_a_large_domain_stays_what_it_is() -> None:
    """Clouds on Hyper-V number their domains by hashes."""
    assert address("9E4E:00:00.0") == "9e4e:00:00.0"
    assert address("00010000:00:00.0") == "10000:00:00.0"
    assert address(None) == ""


def test_a_workstation_with_its_driver() -> None:
    """One RTX 3090, of which four probes speak in three spellings of its address."""
    question = machine(
        nvml("00000000:01:00.0", "NVIDIA GeForce RTX 3090", "8.6", uuid="GPU-1", memory=24 << 30),
        GpuSeen(probe="proc", bus="0000:01:00.0", name="NVIDIA GeForce RTX 3090", uuid="GPU-1"),
        pci("0000:01:00.0", RTX_3090, name="GeForce RTX 3090", chip="GA102"),
        GpuSeen(probe="nvidia-smi", uuid="GPU-1", name="NVIDIA GeForce RTX 3090", capability="8.6"),
    )
    device = only(question)
    assert (device.name, device.capability, device.via) == ("NVIDIA GeForce RTX 3090", "8.6", "nvml")
    assert (device.bus, device.uuid) == ("0000:01:00.0", "GPU-1")
    assert device.datacenter is False
    assert device.disagreement == ""
    assert len(device.answers) == 4
    assert finding(question).status == "ok"


def test_a_machine_without_driver_knows_its_card_by_its_id() -> None:
    device = only(question := machine(pci("0000:0a:00.0", RTX_3090)))
    assert (device.capability, device.via) == ("8.6", "pci 10de:2204 -> GA102 (rows)")
    assert device.name == "GA102"
    assert "8.6, by pci 10de:2204 -> GA102 (rows)" in finding(question).text


def test_nvidia_smi_beats_the_rows_and_nvml_beats_nvidia_smi() -> None:
    smi = GpuSeen(probe="nvidia-smi", bus="0000:01:00.0", name="NVIDIA GeForce RTX 3090", capability="8.9")
    card = pci("0000:01:00.0", RTX_3090)
    assert only(machine(card, smi)).via == "nvidia-smi"
    assert only(machine(card, smi, nvml("00000000:01:00.0", "RTX 3090", "9.0"))).capability == "9.0"


def test_the_id_beats_the_name_of_the_chip() -> None:
    device = only(question := machine(pci("0000:01:00.0", RTX_3090, chip="AD102GL", name="odd")))
    assert device.capability == "8.6"
    assert device.disagreement == "10de:2204 (GA102) says 8.6, chip AD102GL says 8.9"
    assert finding(question).status == "warn"


@pytest.mark.parametrize(
    ("chip", "capability"),
    [
        ("GK110BGL", "3.5"),
        ("GP107GLM", "6.1"),
        ("GA107BM", "8.6"),
        ("GB10B", "11.0"),
        ("GB20B", "12.1"),
        ("GA102XY", None),
        ("GF110", None),
    ],
)
def test_a_chip_by_its_name_alone(chip: str, capability: str | None) -> None:
    """An id that no row has, as a card has that is newer than the rows."""
    device = only(machine(pci("0000:01:00.0", "10de:ff01", chip=chip)))
    assert device.capability == capability


def test_probes_that_contradict_are_shown() -> None:
    question = machine(nvml("0000:01:00.0", "NVIDIA A100", "8.6"), pci("0000:01:00.0", A100))
    assert only(question).disagreement == "nvml says 8.6, 10de:20b0 (GA100) says 8.0"
    one = finding(question)
    assert one.status == "warn"
    assert "nvml says 8.6" in one.text
    assert "--arch" in one.fix


def test_an_unknown_card_stays_a_device() -> None:
    question = machine(pci("0000:41:00.0", UNPUBLISHED, name="something new"))
    device = only(question)
    assert (device.capability, device.via, device.datacenter) == (None, "", None)
    one = finding(question)
    assert one.status == "unknown"
    assert "10de:3340" in one.text
    assert "--arch 8.6" in one.fix


def test_a_dgx_with_eight_equal_cards() -> None:
    """NVML and sysfs list them in another order, and only the address tells them apart."""
    buses = [f"0000:{number:02x}:00.0" for number in (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD)]
    seen = [nvml(f"0000{bus}", "NVIDIA A100-SXM4-40GB", "8.0", uuid=f"GPU-{bus}") for bus in buses]
    found = devices(machine(*seen, *(pci(bus, A100, chip="GA100") for bus in reversed(buses))))
    assert [device.bus for device in found] == buses
    assert all(device.datacenter and len(device.answers) == 2 for device in found)


def test_wsl_has_nvidia_smi_only() -> None:
    smi = GpuSeen(probe="nvidia-smi", name="NVIDIA GeForce RTX 4090", capability="8.9", uuid="GPU-9")
    device = only(machine(smi, wsl=True, probes={"pci": "no GPU"}))
    assert (device.capability, device.via, device.datacenter) == ("8.9", "nvidia-smi", None)


def test_answers_without_address_and_uuid_go_by_order() -> None:
    question = machine(
        nvml("0000:01:00.0", "NVIDIA GeForce RTX 3090", "8.6"),
        nvml("0000:02:00.0", "NVIDIA TITAN V", "7.0"),
        GpuSeen(probe="nvidia-smi", name="NVIDIA GeForce RTX 3090"),
        GpuSeen(probe="nvidia-smi", name="NVIDIA TITAN V"),
    )
    assert [[seen.name for seen in device.answers] for device in devices(question)] == [
        ["NVIDIA GeForce RTX 3090"] * 2,
        ["NVIDIA TITAN V"] * 2,
    ]


def test_a_card_that_is_lent_to_a_virtual_machine() -> None:
    """The driver sees only the second one, and nvidia-smi tells no address."""
    first, second = devices(
        machine(
            pci("0000:01:00.0", RTX_3090),
            pci("0000:02:00.0", V100),
            GpuSeen(probe="proc", bus="0000:02:00.0", uuid="GPU-2"),
            GpuSeen(probe="nvidia-smi", uuid="GPU-2", capability="7.0"),
        )
    )
    assert (first.via, second.via) == ("pci 10de:2204 -> GA102 (rows)", "nvidia-smi")


def test_a_uuid_may_be_understood_only_later() -> None:
    """Whoever knows address and UUID joins those who know one of them, in whichever order they speak."""
    answers = [
        nvml(None, "b", None, uuid="GPU-2"),
        pci("0000:01:00.0", RTX_3090),
        pci("0000:02:00.0", V100),
        GpuSeen(probe="a new one", bus="0000:01:00.0", uuid="GPU-1"),
        GpuSeen(probe="a new one", bus="0000:02:00.0", uuid="GPU-2"),
    ]
    assert [device.uuid for device in devices(machine(*answers))] == ["GPU-1", "GPU-2"]
    assert [len(device.answers) for device in devices(machine(*answers))] == [2, 3]


def test_another_id_is_another_card() -> None:
    smi = GpuSeen(probe="nvidia-smi", pci_id=A100, capability="8.0")
    found = devices(machine(nvml("0000:01:00.0", "NVIDIA TITAN V", "7.0", pci_id=V100), smi))
    assert [device.capability for device in found] == ["7.0", "8.0"]


def test_trust_does_not_depend_on_who_knows_the_address() -> None:
    device = only(
        machine(
            GpuSeen(probe="nvidia-smi", bus="0000:01:00.0", uuid="GPU-1", capability="8.9"),
            GpuSeen(probe="nvml", uuid="GPU-1", capability="9.0"),
        )
    )
    assert (device.capability, device.disagreement) == ("9.0", "nvml says 9.0, nvidia-smi says 8.9")


def test_both_ends_of_a_range_belong_to_it() -> None:
    ranges = ("2200-223f", "2300")
    inside = [number for number in range(0x2100, 0x2400) if within(ranges, number)]
    assert inside == [*range(0x2200, 0x2240), 0x2300]


def test_a_split_card_says_so() -> None:
    question = machine(nvml("0000:01:00.0", "NVIDIA A100", "8.0", mig=True), pci("0000:01:00.0", A100))
    assert only(question).mig
    assert "MIG" in finding(question).text


ORIN = BoardRow(name="Jetson Orin Nano", compatible=("nvidia,p3767-0005",), capability="8.7", source="here")
UNKNOWN = BoardRow(name="?", compatible=(), capability="1.0", source="here")
THOR = BoardRow(name="Jetson AGX Thor", compatible=("nvidia,p4071-0000",), capability="11.0", source="here")


def jetson(row: BoardRow, *gpus: GpuSeen, model: str = "NVIDIA Jetson Developer Kit") -> Question:
    """A machine that is this board."""
    tegra = Tegra(model=model, compatible=row.compatible, l4t="36.4.0")
    tree = (GpuSeen(probe="device tree", name=model),) if model else ()
    question = machine(*gpus, *tree, tegra=tegra)
    return replace(question, catalog=Catalog(board=(ORIN, THOR)))


def test_a_jetson_is_one_device_by_its_board() -> None:
    device = only(jetson(ORIN))
    assert (device.name, device.capability) == ("NVIDIA Jetson Developer Kit", "8.7")
    assert device.via.endswith("-> Jetson Orin Nano (rows)")


def test_what_nvidia_smi_says_of_a_jetson_is_the_same_device() -> None:
    smi = GpuSeen(probe="nvidia-smi", name="Orin (nvgpu)")
    device = only(jetson(ORIN, smi))
    assert (len(device.answers), device.capability) == (2, "8.7")


def test_thor_has_two_names_and_they_do_not_contradict() -> None:
    device = only(jetson(THOR, nvml("00000000:01:00.0", "NVIDIA Thor", "10.1", pci_id="10de:2b00")))
    assert (device.capability, device.disagreement) == ("10.1", "")


def test_a_card_in_a_jetson_is_a_second_device() -> None:
    """An IGX Orin carries an RTX A6000."""
    card = nvml("0005:01:00.0", "NVIDIA RTX A6000", "8.6", pci_id="10de:2230")
    assert [(d.name, d.capability) for d in devices(jetson(ORIN, card))] == [
        ("NVIDIA Jetson Developer Kit", "8.7"),
        ("NVIDIA RTX A6000", "8.6"),
    ]


def test_a_jetson_in_a_container_that_hides_its_tree() -> None:
    device = only(jetson(UNKNOWN, model=""))
    assert (device.name, device.capability) == ("a Jetson board", None)
    smi = GpuSeen(probe="nvidia-smi", name="Orin (nvgpu)", capability="8.7")
    assert only(jetson(UNKNOWN, smi, model="")).capability == "8.7"


def test_a_card_in_an_unknown_board() -> None:
    found = devices(jetson(UNKNOWN, pci("0005:01:00.0", "10de:2230"), model="A board of the future"))
    assert [(d.name, d.capability) for d in found] == [("A board of the future", None), ("GA102", "8.6")]


def test_no_gpu_tells_how_each_probe_ended() -> None:
    one = finding(machine(probes={"nvml": "no libnvidia-ml.so.1", "pci": "no GPU"}))
    assert one.status == "unknown"
    assert "nvml: no libnvidia-ml.so.1; pci: no GPU" in one.text
    assert "--arch" in one.fix
    assert finding(ask(linux_facts(), cuda=True)).status == "unknown"


@pytest.mark.parametrize(
    ("asked", "says"), [("8.6", False), ("Ampere", False), ("auto", True), ("native", True)]
)
@pytest.mark.parametrize("gpus", [(), (pci("0000:41:00.0", UNPUBLISHED),)])
def test_named_architectures_are_not_asked_for_again(
    gpus: tuple[GpuSeen, ...], asked: str, says: bool
) -> None:
    facts = linux_facts(cuda=Cuda(gpus=gpus))
    for question in (
        ask(facts, cuda=True, arch=asked),
        ask(facts, cuda=True, set=(f"TORCH_CUDA_ARCH_LIST={asked}",)),
    ):
        assert ("--arch" in finding(question).fix) is says


PAIR = (
    nvml("0000:01:00.0", "NVIDIA GeForce RTX 3090", "8.6", uuid="GPU-aaaa-1111"),
    nvml("0000:02:00.0", "NVIDIA TITAN V", "7.0", uuid="GPU-aabb-2222"),
)


@each_case(
    ("visible", "capabilities"),
    [
        (None, ["8.6", "7.0"]),
        ("0,1", ["8.6", "7.0"]),
        ("1,0", ["7.0", "8.6"]),
        ("1", ["7.0"]),
        (" 1 , 1 ", ["7.0"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2", []),
        ("1,7,0", ["7.0"]),
        ("GPU-aabb", ["7.0"]),
        ("gpu-AABB-2222,0", ["7.0", "8.6"]),
        ("GPU-aa", []),
        ("GPU-", []),
        ("MIG-abcd", []),
        ("MIG-GPU-aaaa-1111/1/0", ["8.6"]),
        ("²", []),
    ],
)
def test_visible_devices(visible: str | None, capabilities: list[str]) -> None:
    """The words of CUDA_VISIBLE_DEVICES; a beginning that two UUIDs have means neither."""
    assert [d.capability for d in left_visible(machine(*PAIR, visible=visible))] == capabilities


def test_equal_cards_without_uuid_are_distinguished_by_number() -> None:
    same = GpuSeen(probe="nvidia-smi", name="NVIDIA L4", capability="8.9")
    assert len(left_visible(machine(same, same, visible="0,1"))) == 2


def test_an_instance_means_the_only_card_that_is_split() -> None:
    split = nvml("0000:03:00.0", "NVIDIA A100", "8.0", mig=True)
    question = machine(*PAIR, split, visible="MIG-c7384736-a75d-5afc-978f-d2f1294409fd")
    assert [device.capability for device in left_visible(question)] == ["8.0"]


def hidden(visible: str) -> Finding:
    *_, last = checked(machine(*PAIR, visible=visible))
    return last


def test_hidden_devices_are_reported() -> None:
    assert hidden("").status == "warn"
    assert "hides every GPU" in hidden("").text
    assert "hides NVIDIA TITAN V" in hidden("GPU-aaaa-1111").text
    assert (hidden("GPU-aaaa-1111").status, hidden("GPU-aaaa-1111").fix) == ("ok", "")
    assert all(one.status == "ok" for one in checked(machine(*PAIR, visible="1,0")))


def test_numbers_of_different_cards_are_no_sure_thing() -> None:
    """CUDA counts the fastest first, unless it is told to count along the bus."""
    assert "CUDA_DEVICE_ORDER" in hidden("0").text
    assert "CUDA_DEVICE_ORDER" not in hidden("GPU-aaaa-1111").text
    equal = machine(PAIR[0], replace(PAIR[0], bus="0000:02:00.0", uuid="GPU-2"), visible="0")
    assert "CUDA_DEVICE_ORDER" not in checked(equal)[-1].text


# Any answers at all: few values, so that the same GPU is met often.
ANSWERS = st.lists(
    st.builds(
        GpuSeen,
        probe=st.sampled_from([*PROBES, "a new one"]),
        bus=st.sampled_from([None, "", "0000:01:00.0", "00000000:01:00.0", "02:00.0", "0000:02:00.0"]),
        uuid=st.sampled_from([None, "GPU-1", "GPU-2", "gpu-2"]),
        pci_id=st.sampled_from([None, RTX_3090, A100]),
    ),
    max_size=12,
)


@given(ANSWERS)
def test_every_answer_is_in_one_device_and_every_address_in_one(answers: list[GpuSeen]) -> None:
    groups = group_answers(answers)
    assert sorted(map(id, answers)) == sorted(id(seen) for group in groups for seen in group)
    buses = [{address(seen.bus) for seen in group} - {""} for group in groups]
    assert all(len(known) <= 1 for known in buses)
    assert len(known := [bus for one in buses for bus in one]) == len(set(known))


@st.composite
def machines(draw: st.DrawFn) -> tuple[int, list[GpuSeen]]:
    """Some GPUs, and probes that each list all of them in order but leave out what they do not know."""
    number = draw(st.integers(0, 5))
    probes = draw(st.lists(st.sampled_from(PROBES), unique=True, min_size=1))
    seen = []
    for probe in probes:
        bus, uuid, long = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        for index in range(number):
            place = f"{'0000' if long else ''}0000:{index + 1:02x}:00.0"
            seen.append(
                GpuSeen(probe=probe, bus=place if bus else None, uuid=f"GPU-{index}" if uuid else None)
            )
    return number, seen


@given(machines())
def test_no_gpu_is_lost_or_counted_twice(made: tuple[int, list[GpuSeen]]) -> None:
    number, seen = made
    groups = group_answers(seen)
    assert len(groups) == number
    for index, group in enumerate(groups):
        assert {each.uuid for each in group} <= {None, f"GPU-{index}"}


def test_the_order_of_the_probes_does_not_matter() -> None:
    answers = [
        nvml("00000000:01:00.0", "a", "8.6", uuid="GPU-1"),
        pci("0000:01:00.0", RTX_3090),
        GpuSeen(probe="nvidia-smi", uuid="GPU-1"),
        pci("0000:02:00.0", V100),
        pci("0000:03:00.0", SPARK),
    ]
    for order in itertools.permutations(answers):
        assert [device.capability for device in devices(machine(*order))] == ["8.6", "7.0", "12.1"]


@each_case(
    ("name", "capability"),
    [
        ("Tesla T4", "7.5"),
        ("GRID T4-16Q", "7.5"),
        ("NVIDIA T400 4GB", "7.5"),
        ("Quadro RTX 4000", "7.5"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
        ("NVIDIA RTX A4000", "8.6"),
        ("NVIDIA RTX PRO 4000 Blackwell", "12.0"),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 2050", "8.6"),
        ("GeForce RTX 2080 Ti", "7.5"),
        ("GeForce GTX 960", "5.2"),
        ("GeForce GTX 960M", "5.0"),
        ("GRID A100-40C", "8.0"),
        ("NVIDIA A10-24Q", "8.6"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("NVIDIA GB200", "10.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA Graphics Device", None),
    ],
)
def test_a_name_alone_tells_the_capability(name: str, capability: str | None) -> None:
    assert only(machine(GpuSeen(probe="nvidia-smi", name=name))).capability == capability


def test_a_name_counts_where_nothing_else_is_known() -> None:
    """So a wrong row of names contradicts no answer."""
    device = only(machine(nvml("0000:01:00.0", "Tesla T4", "9.0")))
    assert (device.capability, device.disagreement) == ("9.0", "")


def test_what_is_no_capability_is_none() -> None:
    assert only(machine(nvml("0000:01:00.0", "NVIDIA Something", "[N/A]"))).capability is None


NAMED = {
    "2.0": "Tesla C2075",
    "3.0": "GeForce GT 740; Quadro K420; Quadro K600; Quadro K2000; Quadro K4000; Quadro K4200",
    "3.5": "NVIDIA GeForce GT 710; GeForce GT 720; GeForce GT 730; Quadro K5200; Quadro K6000",
    "3.7": "Tesla K80",
    "5.0": "GRID M10-2Q; GeForce GTX 850M; GeForce 840M; GeForce 940M; GeForce 940MX; GeForce GTX 950M",
    "5.2": "GRID M60-8Q; GeForce GTX TITAN X; GeForce GTX 965M; GeForce GTX 970M; Quadro M2000",
    "6.0": "GRID P100-16C; GRID P100X-8Q; GRID P100C-4Q; Quadro GP100",
    "6.1": "GRID P40-4Q; GRID P4-8Q; GRID P6-8Q; NVIDIA TITAN X (Pascal); TITAN Xp; GeForce GT 1010",
    "7.0": "GRID V100D-8Q; GRID V100DX-16C; GRID V100-4Q; Quadro GV100",
    "7.5": "GRID T4-16Q; GRID RTX6000-8Q; GRID RTX8000-12Q; GRID RTX6000P-6Q; GRID RTX8000P-8C",
    "8.0": "NVIDIA A100D-80C; GRID A100DX-80C; GRID A100X-40C; GRID A100-4-20C; NVIDIA A100-1-5C",
    "8.6": "NVIDIA A40-8Q; NVIDIA RTXA6000-8C; NVIDIA RTXA5000-8Q; NVIDIA RTXA5500-8Q; NVIDIA A16-4C",
    "8.7": "Orin; NVIDIA Jetson Orin",
    "8.9": "NVIDIA L40S-48Q; NVIDIA L40-48Q; NVIDIA L4-24Q; NVIDIA L20-48Q; NVIDIA L2-24Q",
    "9.0": "NVIDIA H100-80C; NVIDIA H100XM-80C; NVIDIA H100L-94C; NVIDIA H100XL-94C; NVIDIA H800-80C",
    "10.0": "NVIDIA B200-180C; NVIDIA B100",
    "10.3": "NVIDIA B300 SXM6 AC",
    "11.0": "NVIDIA Thor",
    "12.0": "NVIDIA RTX Pro 6000 Blackwell DC-96Q",
    "12.1": "NVIDIA GB10",
    "": "GeForce GTX 860M; NVIDIA Graphics Device",
}


@each_case("capability", NAMED)
def test_what_products_and_profiles_of_virtual_gpus_are_called(capability: str) -> None:
    for name in NAMED[capability].split("; "):
        found = only(machine(GpuSeen(probe="nvidia-smi", name=name)))
        assert (found.capability or "") == capability, name
