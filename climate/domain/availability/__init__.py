"""Search for free times: domain rules of `POST /v1/availability`."""
