"""Functions of other frameworks under examination: an adapter for each framework, and the detection, names and inputs of functions."""
