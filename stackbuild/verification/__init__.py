"""Verification: run the suite inside an image and judge what it measured (DESIGN §3.7–3.9)."""
