"""The table of checks."""

import time


class Report:
    """Prints a line for every check as it is made, and what came out at the end."""

    def __init__(self):
        self.passed = self.failed = 0
        self.known, self.sections = [], []
        self.began = time.monotonic()

    def check(self, name, problems, detail=""):
        good = not problems
        self.passed += good
        self.failed += not good
        line = f"{'ok' if good else 'FAIL':<5} {name:<74} {detail if good else '; '.join(problems)}"
        print(line.rstrip(), flush=True)
        return good

    def tell(self, title, lines):
        """Something to read after the table."""
        self.sections.append((title, list(lines)))

    def finish(self):
        """What came out, after the table."""
        if self.known:
            self.tell("fails without the gateway as well", self.known)
        for title, lines in self.sections:
            print(f"\n{title}")
            for line in lines:
                print(f"  {line}")
        print(f"\nagents and clients: {time.monotonic() - self.began:.0f} s")
        print(f"{self.passed} passed, {self.failed} failed")
        return self.passed > 0 and self.failed == 0
