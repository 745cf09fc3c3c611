from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.attribution import attribute


@given(st.floats(-1, 1), st.floats(0, 1), st.none() | st.floats(1, 8), st.floats(0, 1))
def test_contributions_add_up_to_what_was_measured(measured, coverage, length, cost):
    found = attribute(measured, coverage, length, cost)
    total = found.coverage + found.acceptance + found.step_cost + found.residual
    assert total == pytest.approx(measured)
