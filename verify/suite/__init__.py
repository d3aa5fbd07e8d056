"""The suite that runs inside an image: standard library only, Python 3.9 and newer.

It measures and never judges. Each gate runs in a process of its own; what it measured, or how it died,
is one JSON line. Verdicts are made outside, from these lines and from what the lock promises.
"""

VERSION = "1"
