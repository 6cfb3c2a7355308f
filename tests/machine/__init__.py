"""The world that the stateful test of the engine lives in."""
