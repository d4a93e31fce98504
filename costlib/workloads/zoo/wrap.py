"""Give the models of ``transformers`` the one tensor in, one tensor out of the zoo."""

from __future__ import annotations

from typing import Any


def first_output(model: Any, output: str) -> Any:
    """Return a module whose only output is the named one of ``model``'s.

    Parameters
    ----------
    model
        A ``transformers`` model that takes its input as the first argument.
    output
        The attribute of its result, e.g. ``"logits"``.
    """
    import torch

    class OneOutput(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return getattr(self.model(x), output)

    return OneOutput()
