# The hub's own image: web, worker, upkeep and keeper are the same code, started differently (see docker-compose.yml).
# BASE is python:3.11-slim-bookworm, or any Debian 12 with python3 and python3-venv.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS packages
# All of requirements.lock, and what connections to providers of models need.
COPY requirements-models.lock /tmp/requirements.lock
RUN python3 -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock

# What the hub serves at /sdk/.
FROM packages AS wheels
WORKDIR /src
COPY packaging packaging
COPY unitools unitools
COPY llm llm
COPY kernel kernel
COPY evidence/verify evidence/verify
RUN SOURCE_DATE_EPOCH=315532800 /venv/bin/pip wheel --no-deps --no-index --no-build-isolation -w /wheels \
    packaging/unitools packaging/toolhub-llm packaging/toolhub-verify

FROM ${BASE}
LABEL org.opencontainers.image.title="toolhub" toolhub.image="hub"
COPY --from=packages /venv /venv
WORKDIR /srv/toolhub
COPY . .
COPY --from=wheels /wheels packaging/wheels
# A user of its own; /data holds the key file and is a volume; /signing is one that only the keeper mounts, and /run/toolhub-boxd has
# the socket between boxd and the worker.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin toolhub \
    && install -d -o toolhub -g toolhub -m 0700 /data /signing /run/toolhub-boxd \
    && /venv/bin/python -m compileall -q .
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 TOOLHUB_DATA_DIR=/data TOOLHUB_BIND=0.0.0.0:8000
USER toolhub
EXPOSE 8000
CMD ["python", "manage.py", "serve"]
