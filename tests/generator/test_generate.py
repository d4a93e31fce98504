from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from costlib.collecting.collect import collect
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.features.task_encoder import TaskEncoder
from costlib.features.version import LANGUAGE_VERSION
from costlib.generator.fit import fit_generator
from costlib.generator.generate import Generated, generate, pick
from costlib.generator.language import VOCABULARY
from costlib.generator.model import Generator
from costlib.generator.sentences import write_down
from costlib.generator.transformer import GeneratorConfig
from costlib.generator.writer import Writer, Written
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.hub.train import train
from costlib.measure.config import MeasureConfig
from costlib.schema import Origin
from costlib.search.evolution.search import EvolutionConfig
from costlib.search.run_model import RunModel, RunModelConfig
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.tvm_compat.api import structural_key
from costlib.workloads import Task, extract_tasks

TINY = GeneratorConfig(width=32, layers=1, epochs=2, random_programs=4)


def written(source: str, bundle: Bundle, hardware: Hardware, count: int) -> Generated:
    generator, model = bundle.require_generator(), bundle.statement_model()
    return generate(source, generator, model, hardware, count, draft=bundle.draft)


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory, measured_dataset: Dataset) -> Bundle:
    out = tmp_path_factory.mktemp("bundles") / "writing"
    return train(measured_dataset, out, held_out_share=0.3, generator=TINY)


def test_programs_are_written_down(measured_dataset: Dataset) -> None:
    sentences = write_down(measured_dataset)
    latencies = measured_dataset.scan().filter(status="ok").collect()
    best = pl.col("latency_s").min().over("workload_id")
    good = latencies.filter(pl.col("latency_s") <= 2 * best)
    assert 0.9 * len(good) <= len(sentences.tokens) <= len(latencies)
    for tokens, chosen in zip(sentences.tokens, sentences.chosen, strict=True):
        assert len(tokens) == len(chosen)
        assert chosen.any() and not chosen[0]
        assert tokens.max() < VOCABULARY


def test_the_bundle_holds_a_generator(writing: Bundle, bundle: Bundle) -> None:
    assert "--generator-epochs 2" in writing.manifest.command
    found = Bundle.load(writing.path).generator
    assert found is not None and found.language == LANGUAGE_VERSION
    assert bundle.generator is None


def test_a_generator_is_trained_further(
    writing: Bundle, measured_dataset: Dataset, tmp_path: Path
) -> None:
    out = tmp_path / "further"
    more = TINY.model_copy(update={"epochs": 1})
    further = train(
        measured_dataset, out, held_out_share=0.3, generator=more, generator_from=writing.path
    )
    assert f"--generator-epochs 1 --generator-from {writing.path}" in further.manifest.command
    assert [one.name for one in tmp_path.iterdir()] == ["further"]
    sentences = write_down(measured_dataset)
    old, new = (one.require_generator() for one in (writing, further))
    losses = [one.losses(sentences.tokens, sentences.chosen).mean() for one in (old, new)]
    assert losses[1] < losses[0]
    learnt = fit_generator(measured_dataset, config=more, start=new)
    again = [one.losses(sentences.tokens, sentences.chosen).mean() for one in (learnt, new)]
    assert again[1] == losses[1] != again[0], "what it goes on from stays as it is"


def test_a_collection_measures_what_is_written(
    writing: Bundle, bundle: Bundle, hardware: Hardware, tmp_path: Path
) -> None:
    mix = Mix(evolved=0, mutated=0, generated=0.5)
    tasks = extract_tasks("matmul 64 48 96", hardware)
    quick = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
    dataset = collect(tasks, tmp_path, programs_per_task=12, mix=mix, bundle=writing, config=quick)
    origins = dataset.scan().collect()["origin"].to_list()
    assert 2 <= origins.count("generated") <= 6
    with pytest.raises(InputError, match="has no generator"):
        collect(tasks, tmp_path, mix=mix, bundle=bundle, config=quick)


@pytest.mark.parametrize("source", ["matmul 64 96 128", "conv2d 1 8 14 14 16 3 pad=1"])
def test_written_programs_are_valid(writing: Bundle, hardware: Hardware, source: str) -> None:
    found = written(source, writing, hardware, 6)
    assert found.notice is None
    assert found.valid >= 0.8 * found.lowered
    assert found.lowered == 16 * 6 < found.written + found.drawn <= 2 * 32 * 6 + 1
    assert {one.origin for one in found.programs} <= {Origin.GENERATED, Origin.RANDOM}
    assert 3 <= len(found.programs) <= min(6, found.valid)
    scores = [program.score for program in found.programs]
    assert scores == sorted(scores, reverse=True)
    task = extract_tasks(source, hardware)[0]
    for one in found.programs:
        program = Program.from_row(task.workload_id, one.sketch_id, one.decisions)
        assert program.program_id == one.program_id
        assert DesignSpace(task).lower(program) is not None
    assert found == written(source, writing, hardware, 6)


def test_equal_code_is_returned_once(
    writing: Bundle, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = DesignSpace(extract_tasks("matmul 64 64 64", hardware)[0])
    drawn = [program for program, _ in islice(space.sample(0), 6)]
    changed = (space.mutate(p, seed, "parallel") for p in drawn for seed in range(1, 4))
    programs = {p.program_id: p for p in [*drawn, *(c[0] for c in changed if c is not None)]}
    schedules = [s for s in map(space.lower, programs.values()) if s is not None]
    code = {structural_key(schedule.mod) for schedule in schedules}
    assert len(code) < len(schedules)
    made = Written(list(programs.values()), [Origin.GENERATED] * len(programs))
    monkeypatch.setattr(Writer, "write_and_draw", lambda *_: made)
    found = written("matmul 64 64 64", writing, hardware, 24)
    assert found.valid == len(schedules)
    assert len(found.programs) == len(code)


def test_as_many_are_drawn_as_written(writing: Bundle, hardware: Hardware, matmul: Task) -> None:
    vectors = sketch_vectors(DesignSpace(matmul), 0)
    writer = Writer(writing.require_generator(), matmul, hardware, vectors)
    both = writer.write_and_draw(100, np.random.default_rng(0))
    written = writer.write_all(100, np.random.default_rng(0))
    count = len(written.programs)
    assert both.programs[:count] == written.programs
    assert both.origins[:count] == written.origins == [Origin.GENERATED] * count
    drawn = [program.program_id for program in both.programs[count:]]
    assert both.origins[count:] == [Origin.RANDOM] * len(drawn) and len(drawn) > 50
    assert len({*drawn, *(p.program_id for p in written.programs)}) == len(both.programs)
    assert {program.sketch_id for program in both.programs[count:]} == set(vectors)


def test_the_best_at_first_look_are_lowered(bundle: Bundle, hardware: Hardware) -> None:
    space = DesignSpace(extract_tasks("matmul 64 96 128", hardware)[0])
    programs = list(
        {p.program_id: p for p, s in islice(space.sample(0), 60) if s is not None}.values()
    )
    encoder, model, draft = TaskEncoder.of_space(space, hardware), bundle.model, bundle.draft
    assert draft is not None
    first = draft.predict(encoder.schedules(programs))
    assert len(set(first)) > 10
    found = pick(programs, space, encoder, model, draft, 3)
    assert found.lowered == found.valid == 48 < len(programs)
    best = {programs[i].program_id for i in np.argsort(-first, kind="stable")[:48]}
    assert {one.program.program_id for one in found.candidates} <= best
    assert found.scores == sorted(found.scores, reverse=True)
    chance = pick(programs, space, encoder, model, None, 1)
    ids = {program.program_id for program in programs[:16]}
    assert {one.program.program_id for one in chance.candidates} <= ids


def test_what_cannot_be_written_is_drawn(writing: Bundle, hardware: Hardware) -> None:
    short = Generator(VOCABULARY, LANGUAGE_VERSION, TINY.model_copy(update={"max_tokens": 8}))

    model = writing.statement_model()
    found = generate("matmul 64 64 64", short, model, hardware, 4, draft=writing.draft)
    assert found.notice is not None and "drawn at random" in found.notice
    assert len(found.programs) == 4
    assert found.written == 0 < found.drawn
    assert {one.origin for one in found.programs} == {Origin.RANDOM}


def test_no_programs(writing: Bundle, hardware: Hardware) -> None:
    with pytest.raises(InputError, match="at least 1"):
        written("matmul 64 64 64", writing, hardware, 0)


def test_a_search_starts_from_what_is_written(
    writing: Bundle, matmul: Task, hardware: Hardware
) -> None:
    origins = {}
    for on in (True, False):
        model = RunModel(writing, RunModelConfig(generator=on))
        search = EvolutionConfig(population=32, generations=1).start(matmul, hardware, model)
        proposals = search.propose(8)
        device = SimulatedDevice(analytic)
        search.observe(proposals, device.measure(matmul, [p.candidate for p in proposals]))
        origins[on] = [p.origin for p in [*proposals, *search.propose(4)]]
        measured = {p.candidate.program.program_id for p in proposals}
        assert not measured & {p.candidate.program.program_id for p in search.propose(4)}
    assert Origin.GENERATED in origins[True]
    assert Origin.GENERATED not in origins[False]
