"""The store: content-addressed wheels, debs and layers, and how they are fetched."""
