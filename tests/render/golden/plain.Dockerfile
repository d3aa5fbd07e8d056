# plain
#
# Rendered by stackbuild from the stack 'plain' and its lock; do not edit. The same lock gives the same file.
# Build it anywhere:  docker build --tag plain FOLDER
# Every input is pinned: the base by digest, Debian packages by version, wheels by hash.

# ---- system: the base and its Debian packages -------------------------------------------------------------------
# nvidia/cuda:13.0.3-base-ubuntu24.04, as it was when the stack was locked
FROM nvidia/cuda:13.0.3-base-ubuntu24.04@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa AS system

# ---- the image ---------------------------------------------------------------------------------------------------
FROM system
LABEL io.stackbuild.pins="{\"diff-ids\":[],\"pins\":{\"base\":{\"digest\":\"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"name\":\"nvidia/cuda:13.0.3-base-ubuntu24.04\"},\"compute-capabilities\":{},\"cuda\":\"13.0.3\",\"driver-floor\":{\"cuda-major\":13,\"source\":\"docs.nvidia.com/cuda/archive/13.2.2/cuda-toolkit-release-notes Table 2/3\",\"version\":\"580.65.06\"},\"files-sha256\":\"\",\"glibc\":\"2.39\",\"image-sha256\":\"7b69107f428ee1f7634b297cef48de6384a9f31c44fe74faf0c0ce09ad2d02c2\",\"lock-sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"os\":\"ubuntu 24.04\",\"stack\":\"plain\"},\"schema\":1}"
LABEL org.opencontainers.image.base.digest="sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
LABEL org.opencontainers.image.base.name="docker.io/nvidia/cuda:13.0.3-base-ubuntu24.04"
LABEL org.opencontainers.image.created="2026-11-01T00:00:00Z"
LABEL org.opencontainers.image.revision="8795fea3a26073ec38e451bb24551c98d6bfb747543ecb207dd843556c202021"
LABEL org.opencontainers.image.source="stacks/plain.yaml"
LABEL org.opencontainers.image.title="plain"
LABEL org.opencontainers.image.version="8795fea3a260"
CMD ["/bin/bash"]
