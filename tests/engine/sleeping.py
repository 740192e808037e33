"""Little studies of the toy lab and of the nap lab, over either road that needs no cluster."""

import json

import naps
import toy
from iclgd.engine.engines import Engine
from iclgd.engine.work import Job
from iclgd.running import Where, run_study

ROADS = [Engine("serial"), Engine("processes", 2)]


def jobs(**given) -> list[Job]:
    return [Job(cell.key({}, 1), cell, {}) for cell in toy.ToySpec(**given).cells()]


def slept(folder, engine, **given):
    spec = naps.NapSpec.of({"log": str(folder / "ran"), **given})
    return run_study("nap", spec, Where(folder / "cells"), engine)


def in_store(folder) -> set[int]:
    records = (json.loads(path.read_text()) for path in (folder / "cells").glob("*/record.json"))
    return {record["spec"]["number"] for record in records}
