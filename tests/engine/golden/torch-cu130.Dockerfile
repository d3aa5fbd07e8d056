# PyTorch and ONNX Runtime on CUDA 13.0
#
# Rendered by stackbuild from the stack 'stackbuild-test-torch-cu130' and its lock; do not edit. The same lock gives the same file.
# Build it anywhere:  docker build --tag stackbuild-test-torch-cu130 FOLDER
# Every input is pinned: the base by digest, Debian packages by version, wheels by hash.
# Wheels come from the indexes, or from wheels/ beside this file when that folder has any.

# ---- system: the base and its Debian packages -------------------------------------------------------------------
# nvidia/cuda:13.0.3-base-ubuntu24.04, as it was when the stack was locked
FROM nvidia/cuda:13.0.3-base-ubuntu24.04@sha256:… AS system

# ---- builder: the wheels, installed by pip into the virtual environment that the image gets ----------------------
FROM system AS builder
# The base brings its own Python; the package that goes with it is the one apt picks.
# hadolint ignore=DL3008
RUN python3.11 -c 'import ensurepip' 2> /dev/null || { \
        set -e; export DEBIAN_FRONTEND=noninteractive; \
        apt-get update; \
        apt-get install --yes --no-install-recommends python3.11-venv; \
        rm -rf /var/lib/apt/lists/*; \
    }
# pip runs from an environment of its own, so that the image's gets only what is locked.
RUN set -e; python3.11 -m venv /opt/pip; \
    python3.11 -m venv --without-pip /opt/venv
# Byte-code by content, not by time: the same wheels give the same files.
ENV SOURCE_DATE_EPOCH=1700000000
# No configuration file of the base has a say in what pip installs.
ENV PIP_CONFIG_FILE=/dev/null
COPY wheels/ /wheels/
# torch and the CUDA libraries, before all others.
COPY requirements-torch.txt /locks/
RUN set -e; set -- --extra-index-url=https://download.pytorch.org/whl/cu130; \
    if ls /wheels/*.whl > /dev/null 2>&1; then set -- --no-index --find-links=/wheels; fi; \
    /opt/venv/bin/python /opt/pip/lib/python3.11/site-packages/pip install --isolated --require-hashes --no-deps \
        --only-binary=:all: --no-cache-dir "$@" --requirement=/locks/requirements-torch.txt
# All other wheels.
COPY requirements.txt /locks/
RUN set -e; set --; \
    if ls /wheels/*.whl > /dev/null 2>&1; then set -- --no-index --find-links=/wheels; fi; \
    /opt/venv/bin/python /opt/pip/lib/python3.11/site-packages/pip install --isolated --require-hashes --no-deps \
        --only-binary=:all: --no-cache-dir "$@" --requirement=/locks/requirements.txt

# ---- the image ---------------------------------------------------------------------------------------------------
FROM system
COPY --from=builder /opt/venv /opt/venv
ENV PATH="/opt/venv/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV LD_LIBRARY_PATH="/opt/venv/lib/python3.11/site-packages/nvidia/cu13/lib:/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib:/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
LABEL io.stackbuild.pins="{\"diff-ids\":[],\"pins\":{\"base\":{\"digest\":\"sha256:…\",\"name\":\"nvidia/cuda:13.0.3-base-ubuntu24.04\"},\"compute-capabilities\":{\"onnxruntime-gpu\":[\"sm_75\",\"sm_80\",\"sm_86\",\"sm_89\",\"sm_90a\",\"sm_120a\"],\"torch\":[\"sm_75\",\"sm_80\",\"sm_86\",\"sm_90\",\"sm_100\",\"sm_120\"]},\"cuda\":\"13.0.96\",\"cudnn\":\"9.13.0.50\",\"driver-floor\":{\"cuda-major\":13,\"source\":\"docs.nvidia.com/cuda/archive/13.2.2/cuda-toolkit-release-notes Table 2/3\",\"version\":\"580.65.06\"},\"files-sha256\":\"\",\"glibc\":\"2.36\",\"image-sha256\":\"…\",\"lock-sha256\":\"…\",\"nccl\":\"2.27.7\",\"onnxruntime\":\"1.31.1\",\"onnxruntime-package\":\"onnxruntime-gpu\",\"os\":\"debian 12\",\"python\":\"3.11.2\",\"stack\":\"stackbuild-test-torch-cu130\",\"torch\":\"2.14.1\",\"torch-variant\":\"cu130\"},\"schema\":1}"
LABEL org.opencontainers.image.base.digest="sha256:…"
LABEL org.opencontainers.image.base.name="docker.io/nvidia/cuda:13.0.3-base-ubuntu24.04"
LABEL org.opencontainers.image.created="2023-11-14T22:13:20Z"
LABEL org.opencontainers.image.description="PyTorch and ONNX Runtime on CUDA 13.0"
LABEL org.opencontainers.image.revision="…"
LABEL org.opencontainers.image.source="stacks/stackbuild-test-torch-cu130.yaml"
LABEL org.opencontainers.image.title="stackbuild-test-torch-cu130"
LABEL org.opencontainers.image.version="2.14.1-cu130-py311-…"
ENTRYPOINT []
CMD ["/bin/bash"]
