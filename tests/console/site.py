"""A site of a few pages on loopback, to try the harness on."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.conftest import ROOT

POLICY: str = json.loads((ROOT / "console" / "headers.json").read_text())["Content-Security-Policy"]
"""The one that the console is served under."""
_TYPES = {"": "text/html; charset=utf-8", "js": "text/javascript", "svg": "image/svg+xml"}


@contextmanager
def site(pages: Mapping[str, str], policy: str = POLICY) -> Iterator[str]:
    """Serve pages by path, under a policy; where."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", _TYPES[self.path.partition(".")[2]] if page is not None else "text/plain")
            if policy:
                self.send_header("Content-Security-Policy", policy)
            body = (page or "").encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
