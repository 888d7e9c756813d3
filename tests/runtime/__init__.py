"""The runtime on small models on a CPU."""
