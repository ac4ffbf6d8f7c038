"""Strategies of hypothesis that tests share."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
ANY_SCALARS, KEYS = SCALARS | st.floats(), st.text(max_size=8)


def json_values(
    scalars: st.SearchStrategy[Any] = ANY_SCALARS, keys: st.SearchStrategy[str] = KEYS
) -> st.SearchStrategy[Any]:
    """Small JSON values; also NaN and infinity, which Python's parser accepts."""
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
    )
