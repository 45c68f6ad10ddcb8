# A gateway in a container: docs/operations/install.md says how to run it.
# The configuration, the agents, the store and the secrets are in /data, a volume; the image has none.

FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY requirements/ requirements/
COPY src/ src/
COPY docs/ docs/
RUN python -m venv /usr/local/lib/carnet
RUN /usr/local/lib/carnet/bin/python -m pip install --no-cache-dir --require-hashes --no-deps -r requirements/postgres.txt -r requirements/build.txt
RUN /usr/local/lib/carnet/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
COPY --from=build /usr/local/lib/carnet /usr/local/lib/carnet
COPY --chmod=755 packaging/start.sh /usr/local/bin/start-carnet
RUN mkdir /data && chown 10001:10001 /data
ENV PATH=/usr/local/lib/carnet/bin:$PATH
# Inside a container all of its addresses are its own; compose.yaml says which port the machine opens.
ENV CARNET__GATEWAY__HOST=0.0.0.0
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8700/readyz', timeout=4)"]
# Longer than drain_seconds and grace_seconds together: docker stop --time 40.
STOPSIGNAL SIGTERM
CMD ["start-carnet"]
