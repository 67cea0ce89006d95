"""Adapters for agent frameworks. Each module needs its framework; nothing here imports one by itself."""
