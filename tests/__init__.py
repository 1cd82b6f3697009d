"""The tests: folders as in the package, `support` for what they share, `benchmarks` for timings, `parity` for what needs torch, JAX or a compiler."""
