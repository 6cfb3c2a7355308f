"""Calendars: feeds of leases, and leases as iCalendar."""
