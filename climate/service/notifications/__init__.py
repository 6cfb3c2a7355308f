"""Notifications: messages, delivery, webhooks."""
