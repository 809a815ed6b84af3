import { readAsset, version } from '../../../core/assets.ts'
import { configSchema } from '../../../core/models/config.ts'
import { openapi } from '../../docs/openapi.ts'
import type { AnswerExamples } from '../../docs/operation.ts'
import { reference, start } from '../../docs/reference.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { type Route, route } from '../../http/request/route.ts'

const tag = 'System'

const text = (call: Call, status: number, body: string) =>
  call.send(status, body, 'text/plain; charset=utf-8', ['cache-control', 'no-store'])

/** Whether a page of another site sent the request. Such a page that embeds or fetches these routes gets no content. */
const isCrossSite = (call: Call) => call.req.headers['sec-fetch-site'] === 'cross-site'

/** Answers 403 to pages of other sites that embed or fetch the route; following a link to it is allowed. */
export const ownPage = (answer: (call: Call) => void) => (call: Call) =>
  isCrossSite(call) && call.req.headers['sec-fetch-dest'] !== 'document' ? text(call, 403, '') : answer(call)

/** Returns the routes for health, metrics and the reference. `all` returns the table of all routes, including these. */
export function systemRoutes(all: () => readonly Route[], { metrics }: Pick<Owners, 'metrics'>): Route[] {
  let description: string | undefined
  let schema: string | undefined
  return [
    route({
      method: 'GET',
      path: '/livez',
      aliases: ['/healthz'],
      scope: 'public',
      tag,
      summary: 'Check liveness',
      description: 'Answers 200 as long as the process runs, also while it starts or stops. For liveness probes.',
      media: ['text/plain'],
      answer: call => text(call, 200, isCrossSite(call) ? '' : 'ok\n'),
    }),
    route({
      method: 'GET',
      path: '/readyz',
      scope: 'public',
      tag,
      summary: 'Check readiness',
      description:
        'Answers 200 if requests are accepted, and 503 while the server starts or stops. For load balancers.',
      media: ['text/plain'],
      answer: call => text(call, 200, isCrossSite(call) ? '' : 'ready\n'),
    }),
    route({
      method: 'GET',
      path: '/metrics',
      scope: 'loopback',
      tag,
      summary: 'Get metrics',
      description:
        'Metrics in the text format of Prometheus. Direct connections from this machine need no token, unless `metrics: token` is set in `infer.yaml`. All others, a proxy on this machine included (`Forwarded`, `X-Forwarded-*`, `X-Real-IP` or `Via`), need the scope `admin:read`.',
      media: ['text/plain'],
      answer: async call => call.send(200, await metrics.text(), metrics.contentType),
    }),
    route({
      method: 'GET',
      path: '/openapi.json',
      scope: 'public',
      tag,
      summary: 'Get API description',
      description: 'This API as OpenAPI 3.1, for the reference at `/docs`, client generators and other tools.',
      media: ['application/json'],
      answer: ownPage(call => call.send(200, (description ??= describeApi(all())))),
    }),
    route({
      method: 'GET',
      path: '/infer.schema.json',
      scope: 'public',
      tag,
      summary: 'Get configuration schema',
      description:
        'JSON Schema of `infer.yaml`. Editors check the file and complete keys with `# yaml-language-server: $schema=<server>/infer.schema.json` as its first line.',
      media: ['application/json'],
      answer: ownPage(call => call.send(200, (schema ??= JSON.stringify(configSchema())))),
    }),
    route({
      method: 'GET',
      path: '/docs',
      scope: 'public',
      tag,
      summary: 'Show reference',
      answer: ownPage(call => call.send(200, reference, 'text/html; charset=utf-8', referenceHeaders)),
    }),
    route({
      method: 'GET',
      path: '/docs/start.js',
      scope: 'public',
      tag,
      summary: 'Get start script of the reference',
      answer: ownPage(call => call.send(200, start, 'text/javascript; charset=utf-8')),
    }),
    route({
      method: 'GET',
      path: '/docs/scalar.js',
      scope: 'public',
      tag,
      summary: 'Get program of the reference',
      answer: ownPage(call =>
        call.send(200, readAsset('docs/scalar.js'), 'text/javascript; charset=utf-8', [
          'cache-control',
          'public, max-age=86400',
        ]),
      ),
    }),
    route({
      method: 'GET',
      path: '/docs/grafana.json',
      scope: 'public',
      tag,
      summary: 'Get the Grafana dashboard',
      answer: ownPage(call => call.send(200, readAsset('docs/grafana.json'))),
    }),
    route({
      method: 'GET',
      path: '/docs/alerts.yaml',
      scope: 'public',
      tag,
      summary: 'Get the alert rules for Prometheus',
      answer: ownPage(call => call.send(200, readAsset('docs/alerts.yaml'), 'application/yaml')),
    }),
  ]
}

/** Renders the API description. Called at the first request for it, so that the start does not take longer. */
function describeApi(routes: readonly Route[]): string {
  const examples = JSON.parse(Buffer.from(readAsset('docs/answer-examples.json')).toString('utf8')) as AnswerExamples
  return JSON.stringify(openapi(routes, version, examples))
}

/** The page may neither load from nor send to another origin. */
const referenceHeaders = [
  'content-security-policy',
  "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy',
  'no-referrer',
]
