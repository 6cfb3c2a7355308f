"""The REST face of climate: parse, call one verb, answer."""
