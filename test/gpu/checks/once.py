"""Preparation that several checks share: it runs with the first of them, whichever of them are chosen."""

from report import Skip


class Once:
    """
    Calling it runs `make()` the first time and returns its value. When that fails, the check that called fails with it and
    later ones are skipped.
    """

    def __init__(self, name, make):
        self.name = name
        self.make = make
        self.state = "new"

    def seconds(self, making, made=1.0):
        """Seconds that a check which calls it needs: `making` as long as there is no value, else `made`."""
        return making if self.state == "new" else made

    def __call__(self):
        if self.state == "failed":
            raise Skip(f"{self.name} failed before")
        if self.state == "new":
            self.state = "failed"
            self.value = self.make()
            self.state = "made"
        return self.value
