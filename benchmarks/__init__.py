"""The figures that benchrunner promises, measured: ``make bench``. Never asserted in tests."""
