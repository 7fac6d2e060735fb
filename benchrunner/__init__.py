"""benchrunner: build, run and compare native storage benchmarks."""
