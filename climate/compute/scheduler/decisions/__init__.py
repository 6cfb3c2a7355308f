"""Decisions of the scheduler: record, log lines, notifications."""
