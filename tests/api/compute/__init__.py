"""Compute, image and network over HTTP, and the reservation engine behind them."""
