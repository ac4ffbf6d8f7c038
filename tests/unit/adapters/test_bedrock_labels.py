"""Labels as Bedrock's invocation log takes them, by botocore's model of the service."""

import re

import botocore.session
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.bedrock.client import request_metadata

SHAPE = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("RequestMetadata")
VALUE = re.compile(SHAPE.value.metadata["pattern"])


@settings(max_examples=25)
@given(st.dictionaries(st.integers(0, 99).map("label_{}".format), st.text(max_size=400), max_size=30))
def test_any_labels_become_valid_metadata(labels):
    metadata = request_metadata(labels)
    assert len(metadata) <= SHAPE.metadata["max"]
    assert all(VALUE.fullmatch(value) for value in metadata.values())
    assert metadata.keys() <= labels.keys()
