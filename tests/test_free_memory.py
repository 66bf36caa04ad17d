"""Free memory: of the machine, and of control groups v1 and v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitweigh._free_memory import free_memory, total_memory

MIB = 2**20


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in {
        "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8192 kB\n",
        **files,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def group_2(path: str, limit: int | str, used: int, inactive: int = 0) -> dict[str, str]:
    folder = f"sys/fs/cgroup/{path}"
    return {
        f"{folder}/memory.max": f"{limit}\n",
        f"{folder}/memory.current": f"{used}\n",
        f"{folder}/memory.stat": f"anon 5\ninactive_file {inactive}\nactive_file 9\n",
    }


def group_1(path: str, limit: int, used: int, inactive: int = 0) -> dict[str, str]:
    folder = f"sys/fs/cgroup/memory/{path}"
    return {
        f"{folder}/memory.limit_in_bytes": f"{limit}\n",
        f"{folder}/memory.usage_in_bytes": f"{used}\n",
        f"{folder}/memory.stat": f"inactive_file 1\ntotal_inactive_file {inactive}\n",
    }


def test_without_groups_it_is_what_the_machine_has_available(tmp_path: Path) -> None:
    assert free_memory(write(tmp_path, {})) == 8 * MIB


def test_where_nothing_tells_it_is_all_of_the_memory(tmp_path: Path) -> None:
    assert free_memory(tmp_path) == total_memory()


@pytest.mark.parametrize(
    ("own", "above", "expected"),
    [
        (group_2("a/b", 5 * MIB, 3 * MIB), {}, 2 * MIB),
        (group_2("a/b", 5 * MIB, 4 * MIB, 3 * MIB), {}, 4 * MIB),  # pages of files can be had
        (group_2("a/b", "max", 4 * MIB), group_2("a", 5 * MIB, 4 * MIB), 1 * MIB),
        (group_2("a/b", 9 * MIB, 1 * MIB), group_2("a", 5 * MIB, 2 * MIB), 3 * MIB),
        (group_2("a/b", 50 * MIB, 1 * MIB), {}, 8 * MIB),  # the machine has less
        (group_2("a/b", 5 * MIB, 6 * MIB), {}, 0),
        (group_2("a/b", "max", 4 * MIB), {}, 8 * MIB),
    ],
)
def test_version_2_of_groups(
    own: dict[str, str], above: dict[str, str], expected: int, tmp_path: Path
) -> None:
    files = {"proc/self/cgroup": "0::/a/b\n", **own, **above}
    assert free_memory(write(tmp_path, files)) == expected


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", **group_2("", 5 * MIB, 3 * MIB)}
    assert free_memory(write(tmp_path, files)) == 2 * MIB


@pytest.mark.parametrize("path", ["docker/1f", ""])  # without a namespace the path is the host's
def test_version_1_of_groups(path: str, tmp_path: Path) -> None:
    lines = "5:cpu,cpuacct:/elsewhere\n4:memory:/docker/1f\n1:name=systemd:/x\n"
    unlimited = group_1("docker", 9223372036854771712, 7 * MIB)
    files = {**unlimited, **group_1(path, 6 * MIB, 5 * MIB, 2 * MIB), "proc/self/cgroup": lines}
    assert free_memory(write(tmp_path, files)) == 3 * MIB


def test_files_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "nonsense\n0::/a\n", **group_2("a", "lots", -3)}
    files["proc/meminfo"] = "MemAvailable: many kB\n"
    assert free_memory(write(tmp_path, files)) == total_memory()
