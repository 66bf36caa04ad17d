"""A link that is cut: three machines as network namespaces, with a Ray node in each.

Packets vanish, without resets, as they do when a cable is pulled. Needs root and `ip`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Seen", "can_make_networks", "run_cut"]

_BRIDGE = "bitweigh0"
_NODES = ("bitweigh1", "bitweigh2", "bitweigh3")
_HEAD = "10.77.0.1"


def can_make_networks() -> bool:
    """Whether this process may make network namespaces."""
    if os.geteuid() != 0:
        return False
    name = f"bitweigh-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0


class Seen(NamedTuple):
    """What queries without pause saw."""

    queries: int
    errors: int
    wrong: int
    worst: float
    """Seconds of the longest query."""

    def __str__(self) -> str:
        """The figures in one line."""
        return (
            f"{self.queries:,} queries, {self.errors} errors, {self.wrong} wrong, "
            f"worst {self.worst:.3f} s"
        )


def run_cut(seconds: float) -> Seen:
    """Cut the link to a node for so many seconds under queries; returns what they saw."""
    with _networks(), tempfile.TemporaryDirectory(prefix="bitweigh-cut-") as folder:
        environment = {
            **os.environ,
            "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef",
            "RAY_AUTH_MODE": "token",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            for number, node in enumerate(_NODES):
                _start_node(node, number, Path(folder), environment)
            driver = subprocess.Popen(
                [*_inside(_NODES[0]), sys.executable, "-m", "benchmarks.cluster.networks", folder],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert driver.stdout is not None
            _wait_for(driver, "ready")
            _ip("link", "set", f"{_NODES[2]}h", "down")
            time.sleep(seconds)
            _ip("link", "set", f"{_NODES[2]}h", "up")
            time.sleep(2)
            (Path(folder) / "stop").touch()
            output, _ = driver.communicate(timeout=120)
            queries, errors, wrong, worst = output.split()[-4:]
            return Seen(int(queries), int(errors), int(wrong), float(worst))
        finally:
            for node in _NODES:
                _kill_all(node)


def _wait_for(driver: subprocess.Popen[str], word: str) -> None:
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.strip() == word:
            return
    raise RuntimeError(f"the driver ended before it was {word}")


def _start_node(node: str, number: int, folder: Path, environment: dict[str, str]) -> None:
    ray = str(Path(sys.executable).parent / "ray")
    address = f"10.77.0.{number + 1}"
    role = (
        ["--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false"]
        if number == 0
        else [f"--address={_HEAD}:6379", "--num-cpus=4"]
    )
    command = [
        *_inside(node),
        ray,
        "start",
        *role,
        f"--node-ip-address={address}",
        f"--temp-dir={folder}/ray{number}",
        "--disable-usage-stats",
    ]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=90)


def _inside(node: str) -> list[str]:
    return ["ip", "netns", "exec", node]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextlib.contextmanager
def _networks() -> Iterator[None]:
    """Three namespaces that reach each other through a bridge."""
    _remove_networks()
    try:
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("link", "set", _BRIDGE, "up")
        for number, node in enumerate(_NODES):
            _ip("netns", "add", node)
            _ip("link", "add", f"{node}h", "type", "veth", "peer", "name", f"{node}n")
            _ip("link", "set", f"{node}h", "master", _BRIDGE, "up")
            _ip("link", "set", f"{node}n", "netns", node)
            _ip("-n", node, "addr", "add", f"10.77.0.{number + 1}/24", "dev", f"{node}n")
            _ip("-n", node, "link", "set", f"{node}n", "up")
            _ip("-n", node, "link", "set", "lo", "up")
        yield
    finally:
        _remove_networks()


def _remove_networks() -> None:
    for node in _NODES:
        _kill_all(node)
        subprocess.run(["ip", "netns", "del", node], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", f"{node}h"], capture_output=True, check=False)
    subprocess.run(["ip", "link", "del", _BRIDGE], capture_output=True, check=False)


def _kill_all(node: str) -> None:
    """Kill every process in a namespace."""
    found = subprocess.run(
        ["ip", "netns", "pids", node], capture_output=True, text=True, check=False
    )
    for process in found.stdout.split():
        with contextlib.suppress(OSError):
            os.kill(int(process), 9)


def _drive(folder: Path) -> None:
    """In the first namespace: serve shards from the other two, and search until told to stop."""
    import ray

    from benchmarks.cluster.codes import some_codes, some_costs
    from benchmarks.cluster.faults import Load
    from bitweigh import Index, cluster
    from bitweigh.cluster.serving.ray_actors import NAMESPACE

    codes = some_codes(100_000)
    costs = some_costs(codes, 200)
    one = Index(64)
    one.add(codes)
    cluster.build(codes, folder / "shards", shards=2)
    ray.init(address=f"{_HEAD}:6379", namespace=NAMESPACE, log_to_driver=False)
    found = cluster.start(folder / "shards", "cut", groups=1, replicas=2)
    with Load(found, costs, one.search(costs, 10)) as load:
        time.sleep(2)
        print("ready", flush=True)
        while not (folder / "stop").exists():
            time.sleep(0.1)
    print(found.status())
    for error in sorted(set(load.errors))[:3]:
        print(error)
    print(f"{load.queries} {len(load.errors)} {load.wrong} {max(load.times):.3f}", flush=True)
    os._exit(0)  # Ray waits for nodes that cannot be reached


if __name__ == "__main__":
    _drive(Path(sys.argv[1]))
