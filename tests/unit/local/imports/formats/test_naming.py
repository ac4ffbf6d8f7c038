"""Namespaces from addresses and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.registration import Registration
from mats.domain.protocols.protocol import (
    join_labels,
    label_of_title,
    namespace_of_domain,
    namespace_of_url,
    to_label,
)


@pytest.mark.parametrize(
    ("url", "namespace"),
    [
        ("https://www.Example.com/about", "com.example"),
        ("https://api.example.co.uk:8443/v1?x=1", "uk.co.example.api"),
        ("https://github.com/Some-One/thing", "io.github.some-one"),
        ("https://github.com/", ""),
        ("https://raw.githubusercontent.com/Some-One/thing/main/openapi.json", "io.github.some-one"),
        ("https://someone.github.io/x", "io.github.someone"),
        ("https://bücher.example", "example.xn--bcher-kva"),
        ("http://localhost:3000", ""),
        ("http://printer.local", ""),
        ("http://127.0.0.1/x", ""),
        ("http://[::1]/x", ""),
        ("http://10.0/x", ""),
        ("file:///etc/passwd", ""),
        ("not an address", ""),
        ("http://[", ""),
        ("https://user:secret@example.com", "com.example"),
    ],
)
def test_an_address_gives_the_namespace_of_its_host(url, namespace):
    assert namespace_of_url(url) == namespace


def test_first_address_with_a_global_host_counts():
    assert namespace_of_url("http://localhost", "", "https://a.example", "https://b.example") == "example.a"


def test_namespace_of_a_domain_ignores_case():
    assert namespace_of_domain("io.github.Some_One") == "io.github.some-one"


def test_texts_without_letters_get_distinct_labels():
    assert to_label("見積書") != to_label("請求書")
    assert to_label("") == ""


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_result_is_a_valid_namespace(one, two):
    for made in (
        to_label(one),
        namespace_of_domain(one),
        join_labels((to_label(one), to_label(two))),
        namespace_of_url(f"https://{one}/{two}"),
    ):
        if made:
            assert Registration.parse({"namespace": made, "name": "x", "kind": "tool"}).namespace == made


@pytest.mark.parametrize(
    ("title", "home", "label"),
    [
        ("GitHub's official OpenAPI spec + Octokit extension", "com.github.api", "octokit"),
        ("Claims API (v2)", "com.acme", "claims"),
        ("The Acme REST API", "com.acme.api", ""),
        ("Parcel Hub carrier performance reports", "com.example", "parcel-hub-carrier"),
    ],
)
def test_a_title_adds_to_a_namespace_what_its_home_lacks(title, home, label):
    assert label_of_title(title, home) == label


def test_a_title_without_latin_letters_keeps_its_label():
    assert label_of_title("見積書", "jp.acme") == to_label("見積書")
