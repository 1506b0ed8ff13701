"""An operator as the next one is written: one class, and one line that names its verb (toy_verb.py)."""

from __future__ import annotations

from airflow_hudi.operators.base import BaseHudiOperator
from tests.support.toy_verb import WeighRequest


class HudiWeighOperator(BaseHudiOperator):
    request = WeighRequest
