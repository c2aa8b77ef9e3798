"""The errors a person sees: one line each, saying what happened, with which value, and what to do next."""


class MediError(Exception):
    """A build, a file or a row is wrong; the message is one line for a person. The command line exits with 1."""


class UsageError(MediError):
    """The call itself is wrong (unknown source, impossible quota). The command line exits with 2."""
