"""Notices: notifications, mail and calendar feeds."""
