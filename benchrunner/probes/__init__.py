"""What a host is, and whether it is fit to measure on: commands, and functions over their output.

``facts`` gathers what does not change by itself; ``preconditions`` asks what a sweep needs to know
before it starts; ``doctor`` says what is missing on a machine and how to mend it.
"""
