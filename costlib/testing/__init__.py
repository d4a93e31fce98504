"""For tests of what is built on costlib: a simulated device and conformance suites."""
