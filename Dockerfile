# seunet for the CPU, as a user without rights.  See docs/install.md.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE LICENSE-WEIGHTS.md constraints.txt ./
COPY configs configs
COPY src src
# The CPU build of torch: the default one brings gigabytes of CUDA.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/seunet \
 && /opt/seunet/bin/pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" --constraint constraints.txt .

FROM python:3.11-slim
COPY --from=build /opt/seunet /opt/seunet
# Compiled once, in the last step, and not at the start of every container; any user may read it and add to it.
ENV PATH=/opt/seunet/bin:$PATH NUMBA_CACHE_DIR=/opt/compiled
RUN useradd --uid 1000 seunet && mkdir /data && chown seunet /data && mkdir --mode 1777 /opt/compiled
USER seunet
WORKDIR /data
RUN seunet warm-up
ENTRYPOINT ["seunet"]
CMD ["--help"]
