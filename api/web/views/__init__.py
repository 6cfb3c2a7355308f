"""Views of the pages: each reads a request, calls one operation of a service, and renders a template."""
