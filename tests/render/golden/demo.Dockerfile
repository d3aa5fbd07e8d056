# demo
#
# Rendered by stackbuild from the stack 'demo' and its lock; do not edit. The same lock gives the same file.
# Build it anywhere:  docker build --tag demo FOLDER
# Every input is pinned: the base by digest, Debian packages by version, wheels by hash.
# Wheels come from the indexes, or from wheels/ beside this file when that folder has any.

# ---- system: the base and its Debian packages -------------------------------------------------------------------
# Debian bookworm from 2 packages: rootfs.tar was made of exactly the locked packages.
FROM scratch AS system
ADD rootfs.tar /
ENV PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN set -e; export DEBIAN_FRONTEND=noninteractive; \
    apt-get update; \
    apt-get install --yes --no-install-recommends \
        python3.11:amd64=3.11.2-6+deb12u9 \
    ; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/*

# ---- builder: the wheels, installed by pip into the virtual environment that the image gets ----------------------
FROM system AS builder
RUN python3.11 -c 'import ensurepip' 2> /dev/null || { \
        set -e; export DEBIAN_FRONTEND=noninteractive; \
        apt-get update; \
        apt-get install --yes --no-install-recommends python3.11-venv=3.11.2-6+deb12u9; \
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
# All other wheels.
COPY requirements.txt /locks/
RUN set -e; set --; \
    if ls /wheels/*.whl > /dev/null 2>&1; then set -- --no-index --find-links=/wheels; fi; \
    /opt/venv/bin/python /opt/pip/lib/python3.11/site-packages/pip install --isolated --require-hashes --no-deps \
        --only-binary=:all: --no-cache-dir "$@" --requirement=/locks/requirements.txt

# ---- the image ---------------------------------------------------------------------------------------------------
FROM system
COPY --from=builder /opt/venv /opt/venv
ENV PATH="/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LABEL io.stackbuild.pins="{\"diff-ids\":[],\"pins\":{\"base\":{\"digest\":\"sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\",\"name\":\"bootstrap debian bookworm\"},\"compute-capabilities\":{},\"files-sha256\":\"\",\"glibc\":\"2.36\",\"lock-sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"onnxruntime\":\"1.31.1\",\"onnxruntime-package\":\"onnxruntime\",\"os\":\"debian 12\",\"python\":\"3.11.2\",\"stack\":\"demo\"},\"schema\":1}"
LABEL org.opencontainers.image.created="2026-11-01T00:00:00Z"
LABEL org.opencontainers.image.revision="159d7d08f62637ec3777138cc6466f5fd618574338ee9dc3fc31cd1caf9c0628"
LABEL org.opencontainers.image.source="stacks/demo.yaml"
LABEL org.opencontainers.image.title="demo"
LABEL org.opencontainers.image.version="py311-159d7d08f626"
ENTRYPOINT []
CMD ["/bin/bash"]
