"""The cost models of costlib, held to :class:`costlib.testing.cost_models.CostModelSuite`."""

from __future__ import annotations

from costlib.models import model_class
from costlib.testing.cost_models import CostModelSuite


class TestEnsemble(CostModelSuite):
    model_class = model_class("ensemble")


class TestGbdt(CostModelSuite):
    model_class = model_class("gbdt")


class TestGbdtOfSchedules(CostModelSuite):
    model_class = model_class("gbdt-schedules")


class TestGbdtOfStatements(CostModelSuite):
    model_class = model_class("gbdt-statements")


class TestMlp(CostModelSuite):
    model_class = model_class("mlp")


class TestSequence(CostModelSuite):
    model_class = model_class("sequence")
