"""What the tests stand on: real servers on loopback; real wheels, debs and base images."""
