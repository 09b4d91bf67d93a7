"""A local OpenAI-compatible server: what the scenario service calls. See server.py."""
