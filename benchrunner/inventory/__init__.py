"""What `benchrunner hosts` does with one host of the inventory: shown, checked, trusted, cared for.

One file for each verb; values come out, and the command line prints them. `taking` is shared.
"""
