"""The schema of the history, as the steps that make it: version N is what the first N steps leave.

A step that has been released never changes; a change of the schema is one more step.
"""

from __future__ import annotations

# In the file's header (SQLite file format, section 1.3.5 and 1.3.16): tells our file from other programs'.
APPLICATION_ID = 0x5342_4E48  # "SBNH"

Step = tuple[str, ...]

# What seldom changes from one night to the next (pin lists, findings, verdicts, images) is stored once, by its
# content, and named by number: a year of 200 stacks stays a small file.
STEPS: tuple[Step, ...] = (
    (
        """CREATE TABLE nights (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            started TEXT NOT NULL,
            seconds REAL NOT NULL,
            host TEXT NOT NULL,
            version TEXT NOT NULL,
            interrupted INTEGER NOT NULL
        ) STRICT""",
        "CREATE TABLE stacks (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT",
        # JSON, deflated (RFC 1950), under the sha256 of the JSON.
        """CREATE TABLE contents (
            id INTEGER PRIMARY KEY,
            sha256 BLOB NOT NULL UNIQUE,
            body BLOB NOT NULL
        ) STRICT""",
        """CREATE TABLE images (
            id INTEGER PRIMARY KEY,
            config_digest TEXT NOT NULL,
            lock_sha256 TEXT NOT NULL,
            inputs_sha256 TEXT NOT NULL,
            name TEXT NOT NULL,
            registry_digest TEXT NOT NULL,
            size INTEGER NOT NULL,
            diff_ids INTEGER NOT NULL REFERENCES contents,
            pins INTEGER NOT NULL REFERENCES contents,
            UNIQUE (config_digest, lock_sha256, inputs_sha256, name, registry_digest, size, diff_ids, pins)
        ) STRICT""",
        "CREATE TABLE gates (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE) STRICT",
        "CREATE TABLE verdict_sets (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE) STRICT",
        """CREATE TABLE verdicts (
            verdict_set INTEGER NOT NULL REFERENCES verdict_sets ON DELETE CASCADE,
            gate INTEGER NOT NULL REFERENCES gates,
            verdict TEXT NOT NULL,
            PRIMARY KEY (verdict_set, gate)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE results (
            id INTEGER PRIMARY KEY,
            night INTEGER NOT NULL REFERENCES nights ON DELETE CASCADE,
            stack INTEGER NOT NULL REFERENCES stacks,
            platform TEXT NOT NULL,
            external INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            complete INTEGER NOT NULL,
            image INTEGER NOT NULL REFERENCES images,
            verdict_set INTEGER NOT NULL REFERENCES verdict_sets,
            findings INTEGER NOT NULL REFERENCES contents,
            newer INTEGER NOT NULL REFERENCES contents,
            drift INTEGER REFERENCES contents,
            change INTEGER REFERENCES contents,
            compared_with TEXT NOT NULL,
            tries INTEGER NOT NULL,
            seconds TEXT NOT NULL,
            reports TEXT NOT NULL,
            UNIQUE (stack, night, platform)
        ) STRICT""",
        # For the pages of one night, and so that removing what no night names any more needs no full scan.
        "CREATE INDEX results_of_night ON results (night)",
        "CREATE INDEX results_of_image ON results (image)",
        "CREATE INDEX results_of_verdict_set ON results (verdict_set)",
        "CREATE INDEX results_of_findings ON results (findings)",
        "CREATE INDEX results_of_newer ON results (newer)",
        "CREATE INDEX results_of_drift ON results (drift) WHERE drift IS NOT NULL",
        "CREATE INDEX results_of_change ON results (change) WHERE change IS NOT NULL",
        "CREATE INDEX images_of_diff_ids ON images (diff_ids)",
        "CREATE INDEX images_of_pins ON images (pins)",
    ),
)
