"""Decisions of the scheduler: records, log lines, notifications."""
