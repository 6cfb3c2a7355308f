"""Schemas of request bodies, and building blocks of OpenAPI documents."""
