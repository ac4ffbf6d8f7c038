"""`GET /metrics` where the package for it is not installed."""

import sys

from starlette.testclient import TestClient

from mats.local.service import application


def test_without_its_package_metrics_say_what_to_install_and_all_else_works(local, monkeypatch):
    monkeypatch.delitem(sys.modules, "mats.adapters.prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with TestClient(application(local), base_url="http://127.0.0.1") as client:
        refused = client.get("/metrics")
        assert refused.status_code == 503
        assert refused.json()["detail"] == (
            "/metrics needs prometheus_client, which is not installed: pip install 'mats[local]'"
        )
        assert "Retry-After" not in refused.headers  # no retry installs it
        assert client.post("/metrics").status_code == 405
        assert client.get("/healthz").status_code == 200
        assert client.get("/registry").status_code == 200
