"""Everything that can go wrong on purpose: one family of errors, each a sentence and a hint.

The command line prints ``message`` and ``hint`` on one line each, without a traceback, and exits
with ``exit_code``. A message says what failed and where; a hint says what to try next.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_TRIAL_FAILED = 1
EXIT_CONFIGURATION = 2
EXIT_NOTHING_SELECTED = 3
EXIT_REGRESSION = 4
EXIT_INTERRUPTED = 130


class BenchrunnerError(Exception):
    """An expected failure: what failed, where, and what to try."""

    exit_code = EXIT_CONFIGURATION

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message


class ConfigurationError(BenchrunnerError):
    """A file, option or name written by a person is wrong."""


class NothingSelectedError(BenchrunnerError):
    """The selection is valid but empty: a version range without versions, say."""

    exit_code = EXIT_NOTHING_SELECTED


class SourceError(BenchrunnerError):
    """An engine version cannot be had from any source."""


class BuildError(BenchrunnerError):
    """A build failed or its result was refused; ``log_tail`` holds the last lines it printed."""

    exit_code = EXIT_TRIAL_FAILED

    def __init__(self, message: str, hint: str = "", log_tail: str = "") -> None:
        super().__init__(message, hint)
        self.log_tail = log_tail


class TransportError(BenchrunnerError):
    """A host cannot be reached, or a file cannot be moved to or from it."""

    exit_code = EXIT_TRIAL_FAILED


class LaunchError(BenchrunnerError):
    """A process cannot be started, watched or ended on a host."""

    exit_code = EXIT_TRIAL_FAILED


class ForeignDirectoryError(BenchrunnerError):
    """A directory that should be ours carries no marker of ours: never touched, never deleted."""


class StoreError(BenchrunnerError):
    """The results store cannot be opened, read or written."""


class MissingStoreError(StoreError):
    """There is no store yet where one is looked for."""


class ResultsDiskFullError(StoreError):
    """No space is left where results are kept."""

    exit_code = EXIT_TRIAL_FAILED


class OutputNotRecognisedError(BenchrunnerError):
    """The text is not the output of the tool it is said to come from."""

    exit_code = EXIT_TRIAL_FAILED


class HostBusyError(BenchrunnerError):
    """Another controller holds the host's lease."""

    exit_code = EXIT_TRIAL_FAILED
