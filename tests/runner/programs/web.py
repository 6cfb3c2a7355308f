"""A web process for the runner's tests: it answers /healthz on CLIMATE_PORT."""

import http.server
import os


class Health(http.server.BaseHTTPRequestHandler):
    """Answers everything with 200."""

    def do_GET(self) -> None:
        """Say that all is well."""
        self.send_response(200)
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""


http.server.HTTPServer(("127.0.0.1", int(os.environ["CLIMATE_PORT"])), Health).serve_forever()
