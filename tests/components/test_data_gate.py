"""DataGate: data that was not checked does not pass."""

import pytest
from tfx.types import standard_artifacts

from components.artifacts import CheckedData
from components.data_gate import DataGate
from core.errors import InputError

pytestmark = pytest.mark.slow


def test_anomalies_of_no_split_are_an_error(tmp_path):
    anomalies, checked = standard_artifacts.ExampleAnomalies(), CheckedData()
    statistics = standard_artifacts.ExampleStatistics()
    anomalies.uri, checked.uri = str(tmp_path / "anomalies"), str(tmp_path / "checked")
    with pytest.raises(InputError, match=f"{anomalies.uri} names no split"):
        DataGate.test_call(anomalies=anomalies, statistics=statistics, checked=checked)
    assert not (tmp_path / "checked").exists()
