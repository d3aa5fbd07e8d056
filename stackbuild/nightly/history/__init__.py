"""The history of nights: one SQLite file; everything that speaks SQL is in this folder."""
