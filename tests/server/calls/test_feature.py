"""What all features have in common."""

from __future__ import annotations

import pytest

from funcmcp._auth.access import PRINCIPALS_ONLY
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT, Feature


def test_a_feature_is_for_principals_and_has_a_minute_by_default() -> None:
    feature = Feature()
    assert (feature.interactive, feature.time_limit, feature.access) == (False, DEFAULT_TIME_LIMIT, PRINCIPALS_ONLY)


def test_each_kind_of_feature_says_what_its_key_is() -> None:
    with pytest.raises(NotImplementedError):
        _ = Feature().key
