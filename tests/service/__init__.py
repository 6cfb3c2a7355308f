"""The verbs, on a real database with a cloud in memory."""
