"""The command line: ``raters audit``, ``fit``, ``rank``, ``suggest``, ``report``, ``campaign``,
``simulate`` and ``models``."""


def main() -> int:
    """Run the command line; the value is the exit code."""
    from raters.cli import app

    return app.main()
