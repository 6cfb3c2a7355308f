"""The pages in Chromium, before a running climate."""
