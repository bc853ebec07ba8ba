# A production image: the npm package, as `npm pack` makes it, on Node.
#
#   docker build -t svc --build-arg SVC_COMMIT=$(git rev-parse HEAD) .
#   docker run -p 4000:4000 -v svc-data:/app/.svc -e SVC_PUBLIC_URL -e SVC_SECRET -e SVC_OPERATOR_TOKEN svc
#
# The image holds svc.production.yml as /app/svc.yml; mount your own copy over it:
#   -v ./svc.production.yml:/app/svc.yml:ro
#
# A tag can come to mean another image. To build on one that you have looked at, give its digest:
#   --build-arg NODE_IMAGE=node:24-slim@sha256:… (docs/operations.md says how to read it)
ARG NODE_IMAGE=node:24-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Not `npm ci`: see decisions/build.md. What builds stays out of the image.
RUN npm install --omit=dev --ignore-scripts --no-save --no-audit --no-fund
COPY LICENSE svc.production.yml ./
COPY bin bin
COPY console console
COPY src src
RUN node bin/build-package.ts --pack && npm pack --ignore-scripts && tar -xzf svc-*.tgz

FROM ${NODE_IMAGE}
# HOST and PORT win over svc.yml, so that EXPOSE and HEALTHCHECK stay true.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 XDG_CACHE_HOME=/app/.cache
# Told in /api/health and `svc version`: --build-arg SVC_COMMIT=$(git rev-parse HEAD)
ARG SVC_COMMIT=""
ENV SVC_COMMIT=$SVC_COMMIT
WORKDIR /app
COPY --from=build /app/package ./
# data_dir, for a volume: it holds keys, balances and sealed profiles unless DATABASE_URL is set.
RUN cp svc.production.yml svc.yml && mkdir -m 700 .svc && mkdir .cache && chown node:node .svc .cache
USER node
# Compiles every module once, so that starts are fast: also those that are loaded where the
# configuration needs them.
RUN node bin/svc.mjs version && NODE_COMPILE_CACHE=.cache/svc/.compile-cache \
  node --input-type=module -e 'for (const path of process.getBuiltinModule("fs").globSync("dist/*-????????.js")) \
  await import(`./${path}`)'
EXPOSE 4000
HEALTHCHECK --interval=30s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/api/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Node is process 1 and handles SIGTERM itself (the service drains): no npm or shell in between.
CMD ["node", "bin/svc.mjs", "serve"]
