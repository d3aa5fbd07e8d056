"""Entry of the in-image suite: ``python suite.pyz PLAN RESULTS``.

This file keeps to syntax that Python 2.7 and 3.x both parse, so that an old interpreter says what it
is instead of failing with a syntax error.
"""

import json
import sys

OLDEST = (3, 9)

if sys.version_info < OLDEST:
    event = {"event": "python-too-old", "version": ".".join(str(part) for part in sys.version_info[:3])}
    sys.stdout.write("@stackbuild@ " + json.dumps(event) + "\n")
    sys.stdout.flush()
    sys.exit(3)

from suite.entry import main  # noqa: E402 - needs the check above

sys.exit(main(sys.argv[1:]))
