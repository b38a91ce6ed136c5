# A box for tools that need more than Python: a layer with the program (scripts/provision/layers.py makes it) and, from the
# Python image, our own part. So a change of our sources costs a few hundred kilobytes, not another browser.
ARG LAYER
ARG BOX
FROM ${BOX} AS box

FROM ${LAYER}
ARG KIND
LABEL org.opencontainers.image.title="toolhub sandbox for ${KIND}" toolhub.image="sandbox"
COPY --from=box /opt/toolhub /opt/toolhub
ENV LANG=C.UTF-8
USER 65534:65534
WORKDIR /w
# From ENV on as in Dockerfile.
RUN ["/usr/local/bin/sandbox-python", "-I", "-S", "-B", "/opt/toolhub/selfcheck.py"]
ENTRYPOINT ["/usr/local/bin/sandbox-python", "-I", "-S", "-B", "/opt/toolhub/sandbox/supervisor.py"]
