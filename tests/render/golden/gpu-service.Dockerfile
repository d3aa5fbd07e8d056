# PyTorch and ONNX Runtime on CUDA 13.0
#
# Rendered by stackbuild from the stack 'gpu-service' and its lock; do not edit. The same lock gives the same file.
# Build it anywhere:  docker build --tag gpu-service FOLDER
# Every input is pinned: the base by digest, Debian packages by version, wheels by hash.
# Wheels come from the indexes, or from wheels/ beside this file when that folder has any.

# ---- system: the base and its Debian packages -------------------------------------------------------------------
# nvidia/cuda:13.0.3-base-ubuntu24.04, as it was when the stack was locked
FROM nvidia/cuda:13.0.3-base-ubuntu24.04@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa AS system
# Further apt repositories, each with the key that the spec names by hash.
COPY keyrings/ /etc/apt/keyrings/
RUN printf '%s\n' \
        'deb [signed-by=/etc/apt/keyrings/stackbuild-0.asc] https://apt.corp.example/debian stable main' \
        > /etc/apt/sources.list.d/stackbuild.list
RUN set -e; export DEBIAN_FRONTEND=noninteractive; \
    apt-get update; \
    apt-get install --yes --no-install-recommends \
        libgomp1:amd64=14.2.0-4ubuntu2 \
        python3.12:amd64=3.12.3-1ubuntu0.8 \
        tzdata=2026a \
    ; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/*

# ---- builder: the wheels, installed by pip into the virtual environment that the image gets ----------------------
FROM system AS builder
RUN python3.12 -c 'import ensurepip' 2> /dev/null || { \
        set -e; export DEBIAN_FRONTEND=noninteractive; \
        apt-get update; \
        apt-get install --yes --no-install-recommends python3.12-venv=3.12.3-1ubuntu0.8; \
        rm -rf /var/lib/apt/lists/*; \
    }
# pip runs from an environment of its own, so that the image's gets only what is locked.
RUN set -e; python3.12 -m venv /opt/pip; \
    python3.12 -m venv --without-pip /opt/venv
# Byte-code by content, not by time: the same wheels give the same files.
ENV SOURCE_DATE_EPOCH=1700000000
# No configuration file of the base has a say in what pip installs.
ENV PIP_CONFIG_FILE=/dev/null
COPY wheels/ /wheels/
# torch and the CUDA libraries, before all others.
COPY requirements-torch.txt /locks/
RUN set -e; set -- --extra-index-url=https://download.pytorch.org/whl/cu130; \
    if ls /wheels/*.whl > /dev/null 2>&1; then set -- --no-index --find-links=/wheels; fi; \
    /opt/venv/bin/python /opt/pip/lib/python3.12/site-packages/pip install --isolated --require-hashes --no-deps \
        --only-binary=:all: --no-cache-dir "$@" --requirement=/locks/requirements-torch.txt
# All other wheels.
COPY requirements.txt /locks/
RUN set -e; set -- --extra-index-url=https://pypi.corp.example/simple; \
    if ls /wheels/*.whl > /dev/null 2>&1; then set -- --no-index --find-links=/wheels; fi; \
    /opt/venv/bin/python /opt/pip/lib/python3.12/site-packages/pip install --isolated --require-hashes --no-deps \
        --only-binary=:all: --no-cache-dir "$@" --requirement=/locks/requirements.txt

# ---- the image ---------------------------------------------------------------------------------------------------
FROM system
COPY --from=builder /opt/venv /opt/venv
# A user that the base already has is taken as it is.
RUN getent passwd 1001 > /dev/null || { \
        getent group 1001 > /dev/null || groupadd --gid=1001 app; \
        useradd --uid=1001 --gid=1001 --home-dir=/home/app --no-create-home \
            --shell=/bin/sh app; \
    }
RUN for folder in /cache /home/app /srv/app; do \
        test -d "$folder" || install -d -m 755 -o 1001 -g 1001 "$folder"; \
    done
COPY --chown=app files/0/ /srv/app/
COPY ["files/1/", "/etc/our app/"]
ENV PATH="/opt/venv/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV LD_LIBRARY_PATH="/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib:/opt/venv/lib/python3.12/site-packages/nvidia/cudnn/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
ENV HF_HOME="/cache"
ENV GREETING="say \"hi\" for \$5 \\ each"
EXPOSE 8080/tcp
VOLUME ["/cache"]
WORKDIR /srv/app
STOPSIGNAL SIGINT
HEALTHCHECK --interval=30s --retries=3 CMD ["curl", "-f", "http://127.0.0.1:8080/"]
LABEL io.stackbuild.pins="{\"diff-ids\":[],\"pins\":{\"base\":{\"digest\":\"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"name\":\"nvidia/cuda:13.0.3-base-ubuntu24.04\"},\"compute-capabilities\":{\"onnxruntime-gpu\":[\"sm_75\",\"sm_80\",\"sm_86\",\"sm_89\",\"sm_90a\",\"sm_120a\"],\"torch\":[\"sm_75\",\"sm_80\",\"sm_86\",\"sm_90\",\"sm_100\",\"sm_120\"]},\"cuda\":\"13.0.96\",\"cudnn\":\"9.13.0\",\"driver-floor\":{\"cuda-major\":13,\"source\":\"docs.nvidia.com/cuda/archive/13.2.2/cuda-toolkit-release-notes Table 2/3\",\"version\":\"580.65.06\"},\"files-sha256\":\"\",\"glibc\":\"2.39\",\"image-sha256\":\"336191ce8b334fcbca480c465d447b314420f830c9c6a7c989d6b92b5a4a33ed\",\"lock-sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"onnxruntime\":\"1.31.1\",\"onnxruntime-package\":\"onnxruntime-gpu\",\"os\":\"ubuntu 24.04\",\"python\":\"3.12.3\",\"stack\":\"gpu-service\",\"torch\":\"2.14.1\",\"torch-variant\":\"cu130\"},\"schema\":1}"
LABEL org.opencontainers.image.base.digest="sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
LABEL org.opencontainers.image.base.name="docker.io/nvidia/cuda:13.0.3-base-ubuntu24.04"
LABEL org.opencontainers.image.created="2026-11-01T00:00:00Z"
LABEL org.opencontainers.image.description="PyTorch and ONNX Runtime on CUDA 13.0"
LABEL org.opencontainers.image.revision="6fbf2ea0a4c41703d986d0adec1e252c8798e3af5212660b4fd97d287967fa0f"
LABEL org.opencontainers.image.source="stacks/gpu-service.yaml"
LABEL org.opencontainers.image.title="gpu-service"
LABEL org.opencontainers.image.version="2.14.1-cu130-py312-6fbf2ea0a4c4"
LABEL team="platform"
USER 1001
ENTRYPOINT []
CMD ["python", "serve.py", "--price=$5"]
