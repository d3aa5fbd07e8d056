"""Simulated GPU hosts: a container gets any driver, CUDA level and GPUs, through a real engine.

What is simulated is the driver's ABI (``libcuda.so.1``, ``libnvidia-ml.so.1``, device nodes) and what puts it
into containers (NVIDIA's legacy hook, CDI). The engine, the device request and everything in the container
are real. Kernels cannot run. Use the fixture ``simulated_host``::

    with simulated_host("driver-535-two-l4.yaml") as engine: ...
"""
