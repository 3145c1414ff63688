"""The one exception that means: the user can mend this."""


class UserError(Exception):
    """A user's mistake, as one line that names the flag or the file and the mend.

    Commands print it without a traceback and exit with code 2 (`experiments/cli.py`).
    """
