# A production image: dependencies without development and local-node packages, the console built,
# sources of the service as they are.
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
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# Not `npm ci`: see decisions/build.md. The anvil binary is an optional package and stays out.
RUN npm install --omit=dev --omit=optional --ignore-scripts --no-save --no-audit --no-fund

# The console and the bundles of packages, built: what builds them stays out of the image.
FROM ${NODE_IMAGE} AS console
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm install --omit=dev --ignore-scripts --no-save --no-audit --no-fund
COPY bin bin
COPY console console
COPY src src
RUN node bin/build-console.ts
RUN node bin/build-packages.ts

FROM ${NODE_IMAGE}
# HOST and PORT win over svc.yml, so that EXPOSE and HEALTHCHECK stay true.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000
# Told in /api/health and `svc version`: --build-arg SVC_COMMIT=$(git rev-parse HEAD)
ARG SVC_COMMIT=""
ENV SVC_COMMIT=$SVC_COMMIT
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=console /app/node_modules/.console node_modules/.console
COPY --from=console /app/node_modules/.packages node_modules/.packages
COPY package.json package-lock.json ./
COPY bin bin
COPY src src
COPY svc.production.yml svc.yml
# data_dir, for a volume: it holds keys, balances and sealed profiles unless DATABASE_URL is set.
RUN mkdir -m 700 .svc node_modules/.compile-cache && chown node:node .svc node_modules/.compile-cache
USER node
# Compiles every module once, so that starts are fast: also those that are loaded where the
# configuration needs them.
RUN node bin/svc.mjs version && NODE_COMPILE_CACHE=node_modules/.compile-cache \
  node --import ./src/module-hooks.ts --input-type=module -e 'for (const name of ["cli/supervise", "app/hosted", "shared/store/postgres", \
  "shared/nodes/listener"]) await import(`./src/${name}.ts`)'
EXPOSE 4000
HEALTHCHECK --interval=30s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/api/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Node is process 1 and handles SIGTERM itself (the service drains): no npm or shell in between.
CMD ["node", "bin/svc.mjs", "serve"]
