"""How one build is done on one host: its words, the ways to run a recipe, and what is kept of it.

``build`` puts these together. Read ``order`` first, then ``here`` and ``there``.
"""
