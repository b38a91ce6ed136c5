# What postgres:17-bookworm is to docker-compose.yml, from Debian's packages: for a test where no registry answers.
ARG BASE
FROM ${BASE}
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data/data
COPY postgres-entry /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/postgres-entry"]
CMD ["postgres"]
