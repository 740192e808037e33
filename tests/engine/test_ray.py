"""Ray: the same plan on a cluster that is simulated on this machine, which loses workers, drivers and nodes."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from killing import Driver, kill_drivers, kill_workers

import naps
from iclgd.engine.engines import Engine
from iclgd.engine.ray import _needs, _room
from iclgd.errors import Refusal


@pytest.fixture(scope="module")
def cluster():
    """Three nodes of one core each."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()


def workers_of(cluster):
    """The processes in which the nodes of this cluster run cells."""

    def found(_driver: int) -> list[int]:
        pids = []
        for node in cluster.list_all_nodes():
            for info in node.all_processes.get("raylet", []):
                with contextlib.suppress(psutil.NoSuchProcess):
                    for child in psutil.Process(info.process.pid).children(recursive=True):
                        if child.cmdline() and child.cmdline()[0].startswith("ray::Worker"):
                            pids.append(child.pid)
        return pids

    return found


def test_a_study_on_a_cluster_is_whole_and_its_cells_are_run_once(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=24, groups=6, nap=0.05)
    driver.finish(24)
    assert sorted(driver.ran()) == list(range(24))
    assert sorted(driver.told()) == sorted(driver.kept())
    processes = {driver.store.read(key).facts["process"] for key in driver.kept()}
    assert 1 < len(processes) <= 3


def test_errors_and_cells_that_end_their_worker_are_said_and_the_rest_is_kept(tmp_path, cluster):
    trouble = {"raises": "1,", "dies": "6,", "ends": "3,", "fills": "8,"}
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=12, groups=4, **trouble)
    process = driver.start(stdout=subprocess.PIPE)
    out, said = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    last = said.strip().splitlines()[-1]
    assert "2 of 12 cells failed, 10 are kept" in last
    assert "number 1: ZeroDivisionError: one over nothing." in last
    assert "number 6: its process ended 3 times (The actor is dead because its worker process has died)" in last
    assert sorted(driver.kept().values()) == [n for n in range(12) if n not in (1, 6)]
    assert {n: driver.ran().count(n) for n in (1, 3, 6, 8)} == {1: 1, 3: 2, 6: 3, 8: 2}
    (path,) = (driver.store.folder / "quarantine").glob("*.json")
    assert json.loads(path.read_text())["spec"]["number"] == 6


def test_without_a_shared_folder_the_driver_writes_what_workers_return(tmp_path, cluster):
    """The worker looks for the driver's probe where the driver says that it is: there it is not."""
    hidden = "import iclgd.engine.ray as r, pathlib, runpy, sys\n" + (
        "probe = r._probe\n"
        "import contextlib\n"
        "@contextlib.contextmanager\n"
        "def moved(folder):\n"
        "    with probe(folder) as path:\n"
        "        yield path.with_name('elsewhere')\n"
        "r._probe = moved\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=8, groups=4)
    driver.command[1:1] = ["-c", hidden]
    driver.finish(8)
    assert sorted(driver.told()) == sorted(driver.kept())


def test_what_is_done_within_a_cell_is_told_to_the_driver(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=2, groups=1)
    driver.finish(2)
    assert "asleep" in naps.lines(tmp_path / "doing")


def test_a_driver_killed_a_few_times_loses_nothing_and_repeats_nothing(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=80, groups=10, nap=0.05)
    assert kill_drivers(driver, 3, seed=1) < 80
    driver.finish(80)


def test_workers_killed_a_few_times_are_replaced(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=60, groups=10, nap=0.1)
    assert kill_workers(driver, 3, workers_of(cluster)) == 3
    assert sorted(driver.kept().values()) == list(range(60))


@pytest.mark.slow
def test_a_driver_killed_twenty_times_loses_nothing_and_repeats_nothing(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=300, groups=20, nap=0.05)
    assert 40 < kill_drivers(driver, 20) < 300
    driver.finish(300)


@pytest.mark.slow
def test_workers_killed_twenty_times_are_replaced_and_the_study_is_whole(tmp_path, cluster):
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=400, groups=20, nap=0.1)
    assert kill_workers(driver, 20, workers_of(cluster)) == 20
    assert sorted(driver.kept().values()) == list(range(400))


def test_a_node_lost_in_the_middle_of_a_study_costs_only_what_was_at_work_on_it(tmp_path, cluster):
    node = cluster.add_node(num_cpus=1)
    driver = Driver(tmp_path, "ray", address=cluster.address, cells_=60, groups=12, nap=0.3)
    process = driver.start()
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    while not any("ray::Worker" in " ".join(child.cmdline()) for child in raylet.children()):
        assert process.poll() is None
        time.sleep(0.05)
    while len(driver.told()) < 8:
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    assert process.poll() is None
    _, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert sorted(driver.kept().values()) == list(range(60))
    assert len(driver.ran()) <= 61 + 1


def test_an_address_where_no_cluster_answers_is_a_sentence(tmp_path):
    driver = Driver(tmp_path, "ray", address="127.0.0.1:9", cells_=2, groups=2)
    process = driver.start()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    last = "no Ray cluster answers at 127.0.0.1:9 (Connection refused): start one with `ray start --head`."
    assert said.strip().splitlines()[-1] == f"iclgd.errors.Refusal: {last}"


def test_without_ray_a_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    import naps
    from iclgd.running import Where, run_study

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Refusal, match=r'^Ray is not installed: `pip install "iclgd\[cluster\]"`\.$'):
        run_study("nap", naps.NapSpec(cells_=2, groups=2), Where(tmp_path), Engine("ray"))


def node(cpus: int, gpus: int = 0, alive: bool = True) -> dict:
    return {"Alive": alive, "Resources": {"CPU": float(cpus), "GPU": float(gpus)}}


def test_a_worker_asks_for_what_nodes_have_and_a_cluster_holds_as_many_as_fit():
    nodes = [node(8), node(16, 2), node(64, 8, alive=False), node(0)]
    assert _needs(nodes, 0) == {"num_cpus": 4, "num_gpus": 0}
    assert _needs(nodes, 1) == {"num_cpus": 4, "num_gpus": 1}
    assert _needs(nodes, None) == {"num_cpus": 4, "num_gpus": 2}
    assert _needs([node(2)], 1) == {"num_cpus": 2, "num_gpus": 0}
    assert _room(nodes, _needs(nodes, 0)) == 2 + 4
    assert _room(nodes, _needs(nodes, 1)) == 2
    assert _room(nodes, _needs(nodes, None)) == 1
    with pytest.raises(Refusal, match="no node of the Ray cluster has a core to spare"):
        _needs([node(0)], 0)


def test_nothing_is_said_about_ray_before_it_is_asked_for():
    code = "import sys, iclgd.running, iclgd.engine.ray; assert 'ray' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    )
    assert done.returncode == 0
