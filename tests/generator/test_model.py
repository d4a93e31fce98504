from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from costlib.errors import BundleError, InputError
from costlib.generator import training as generator_training
from costlib.generator.model import Generator
from costlib.generator.transformer import GeneratorConfig, build_transformer, weight_shapes

SMALL = GeneratorConfig(width=32, layers=2, max_tokens=16, epochs=60, batch=16, learning_rate=5e-3)
VOCABULARY = 12


def alternating(count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """After a prompt of 1 and a or b, the sequence repeats what it began with."""
    sequences = [np.array([1, 2 + i % 2, *[5 + i % 2] * 6]) for i in range(count)]
    return sequences, [np.arange(8) >= 2 for _ in sequences]


@pytest.fixture(scope="module")
def trained() -> Generator:
    model = Generator(VOCABULARY, "test-1", SMALL)
    losses: list[float] = []
    model.fit(*alternating(64), on_progress=lambda step, steps, loss: losses.append(loss))
    assert losses[-1] < 0.1 * losses[0]
    return model


def everything(position: int, written: np.ndarray) -> np.ndarray:
    return np.ones((len(written), VOCABULARY), bool)


def test_weights_have_the_shapes_that_are_told_without_making_them() -> None:
    made = build_transformer(VOCABULARY, SMALL, 0).state_dict()
    assert weight_shapes(VOCABULARY, SMALL) == {k: tuple(v.shape) for k, v in made.items()}


@pytest.mark.parametrize("kind", [0, 1])
def test_writes_what_it_learnt(trained: Generator, kind: int) -> None:
    rng = np.random.default_rng(0)
    written = trained.generate([1, 2 + kind], [None] * 6, everything, 20, rng)
    assert written.shape == (20, 6)
    assert (written == 5 + kind).mean() > 0.9


def test_given_tokens_and_constraints_are_kept(trained: Generator) -> None:
    def only_nine(position: int, written: np.ndarray) -> np.ndarray:
        mask = np.zeros((len(written), VOCABULARY), bool)
        mask[:, 9] = True
        return mask

    rng = np.random.default_rng(0)
    written = trained.generate([1, 2], [None, 7, None], only_nine, 5, rng)
    np.testing.assert_array_equal(written, [[9, 7, 9]] * 5)


def test_the_cache_changes_nothing(trained: Generator) -> None:
    rng = np.random.default_rng(0)
    written = trained.generate([1, 3], [None] * 6, everything, 3, rng, temperature=0)
    sequences, chosen = alternating(2)
    assert (written == sequences[1][2:]).all()
    assert trained.losses([sequences[1]], [chosen[1]])[0] < 0.1


def test_the_cache_changes_nothing_around_given_tokens() -> None:
    model = Generator(VOCABULARY, "test-1", SMALL)
    torch.manual_seed(0)
    for weight in model._network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    prompt, layout = [1, 4], [7, None, 9, 7, None, 3, 5, None, None, 8, 11, None]
    rng = np.random.default_rng(0)
    written = model.generate(prompt, layout, everything, 2, rng, temperature=0)
    whole = torch.from_numpy(np.concatenate([prompt, written[1]]))
    with torch.inference_mode():
        likeliest = model._network(whole[None, :-1])[0].argmax(1).numpy()
    for position, given in enumerate(layout):
        expected = likeliest[len(prompt) + position - 1] if given is None else given
        assert (written[:, position] == expected).all()


def test_saved_and_loaded(trained: Generator, tmp_path: Path) -> None:
    trained.save(tmp_path)
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".safetensors"}
    assert {value.dtype for value in load_file(tmp_path / "weights.safetensors").values()} == {
        np.dtype("float16")
    }
    again = Generator.load(tmp_path, "test-1")
    loss = again.losses(*alternating(4))
    np.testing.assert_allclose(loss, trained.losses(*alternating(4)), rtol=0.02, atol=1e-4)
    (tmp_path / "twice").mkdir()
    again.save(tmp_path / "twice")
    twice = Generator.load(tmp_path / "twice", "test-1")
    np.testing.assert_array_equal(twice.losses(*alternating(4)), loss)
    with pytest.raises(BundleError, match="language 'test-1', this costlib writes 'test-2'"):
        Generator.load(tmp_path, "test-2")


@pytest.mark.parametrize("damage", ["", "{}", '{"language": "test-1"}', "[]"])
def test_damaged_files(trained: Generator, tmp_path: Path, damage: str) -> None:
    trained.save(tmp_path)
    (tmp_path / "generator.json").write_text(damage)
    with pytest.raises(BundleError, match="holds no generator"):
        Generator.load(tmp_path, "test-1")


@pytest.mark.parametrize(
    "change",
    [
        {"vocabulary": float("inf")},
        {"vocabulary": 10**12},
        {"config": {"width": 32, "layers": 10**9}},
        {"config": {"width": 64, "layers": 2, "max_tokens": 16}},
        {"language": "a\nb"},
    ],
)
def test_settings_that_are_not_its_own(
    trained: Generator, tmp_path: Path, change: dict[str, object]
) -> None:
    trained.save(tmp_path)
    file = tmp_path / "generator.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BundleError, match="generator") as refused:
        Generator.load(tmp_path, "test-1")
    assert len(str(refused.value).splitlines()) == 1


def test_a_weight_that_is_no_number(trained: Generator, tmp_path: Path) -> None:
    trained.save(tmp_path)
    weights = load_file(tmp_path / "weights.safetensors")
    weights["norm.bias"][0] = np.nan
    save_file(weights, tmp_path / "weights.safetensors")
    with pytest.raises(BundleError, match="a weight is not finite"):
        Generator.load(tmp_path, "test-1")


def test_too_long(trained: Generator) -> None:
    with pytest.raises(InputError, match="takes 20 tokens"):
        trained.generate([1] * 2, [None] * 18, everything, 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="no sequence"):
        trained.fit([np.ones(99, "int64")], [np.ones(99, bool)])


def test_a_killed_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator_training, "_CHECKPOINT_SECS", 0.0)
    data = alternating(64)
    whole = Generator(VOCABULARY, "test-1", SMALL)
    whole.fit(*data, epochs=4)

    class Killed(Exception): ...

    def kill(step: int, steps: int, loss: float) -> None:
        if step == 7:
            raise Killed

    file = tmp_path / "new" / "training.safetensors"
    with pytest.raises(Killed):
        Generator(VOCABULARY, "test-1", SMALL).fit(
            *data, epochs=4, checkpoint=file, on_progress=kill
        )
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    steps: list[int] = []
    again = Generator(VOCABULARY, "test-1", SMALL)
    again.fit(*data, epochs=4, checkpoint=file, on_progress=lambda step, *_: steps.append(step))
    assert steps == list(range(8, 17))
    np.testing.assert_allclose(again.losses(*data), whole.losses(*data), rtol=1e-3)


@pytest.mark.parametrize("damage", ["other", "cut", "text"])
def test_a_useless_checkpoint_is_not_used(tmp_path: Path, damage: str) -> None:
    data = alternating(32)
    file = tmp_path / "training.safetensors"
    seed = 1 if damage == "other" else 0
    Generator(VOCABULARY, "test-1", SMALL).fit(*data, epochs=1, seed=seed, checkpoint=file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    if damage == "text":
        file.write_text("no tensors")
    steps: list[int] = []
    again = Generator(VOCABULARY, "test-1", SMALL)
    again.fit(*data, epochs=1, checkpoint=file, on_progress=lambda step, *_: steps.append(step))
    assert steps == [1, 2]
