"""Adapters from the operations' signatures to the compiled module's."""
