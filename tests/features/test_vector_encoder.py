from __future__ import annotations

import itertools

import numpy as np

from costlib.features.schedule import ScheduleEncoder, schedule_batch
from costlib.features.task_context import describe_task
from costlib.features.vector_encoder import VectorEncoder
from costlib.hardware import Hardware
from costlib.models.baselines.sequence import SequenceConfig, SequenceModel
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import DecisionVectors
from costlib.workloads import Task


def test_vectors_and_programs_give_the_same_features(matmul: Task, hardware: Hardware) -> None:
    space = DesignSpace(matmul)
    sketch = space.sketches[0]
    drawn = [program for program, _ in itertools.islice(space.sample(0), 40)]
    examples = [program for program in drawn if program.sketch_id == sketch.sketch_id]
    vectors = DecisionVectors(sketch, examples)
    shapes = [shape for _, shape in matmul.arguments]
    encoder = ScheduleEncoder(sketch.instructions, matmul.name, shapes)
    context = describe_task(matmul, hardware)

    rows = vectors.random(200, np.random.default_rng(0))
    fast = VectorEncoder(vectors, encoder, context)(rows)
    programs = vectors.decode(rows)
    slow = schedule_batch(
        {sketch.sketch_id: encoder},
        [program.sketch_id for program in programs],
        [program.decisions for program in programs],
        context,
    )
    np.testing.assert_array_equal(fast.stores, slow.stores)
    np.testing.assert_array_equal(fast.offsets, slow.offsets)
    np.testing.assert_array_equal(fast.context, slow.context)
    assert fast.names == slow.names
    assert len(slow.names) == slow.context.shape[1]

    labels = np.linspace(0.1, 1, 200)
    model = SequenceModel(SequenceConfig(width=8, heads=2, epochs=1))
    model.fit(slow, labels, np.zeros(200, "int64"))
    np.testing.assert_array_equal(model.predict(fast), model.predict(slow))
