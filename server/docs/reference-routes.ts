import { readAsset, readLargeText, version } from '../../core/assets.ts'
import { configSchema } from '../../core/models/config.ts'
import { ownPage } from '../http/answer/own-page.ts'
import { type Route, routeOf } from '../http/request/route.ts'
import { type AnswerExamples, openapi } from './openapi.ts'

/**
 * The page of the interactive reference. It uses Scalar, served from infer's own assets. The configuration turns off
 * all requests to other hosts (fonts, proxy, telemetry), and the response's content security policy forbids them. The
 * bar at the top links to the guides.
 */
const referencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>infer: API reference</title>
<link rel="icon" href="data:,">
<style>
:root { --scalar-custom-header-height: 3rem; }
.bar { position: sticky; top: 0; z-index: 100; display: flex; gap: 1rem; align-items: center; height: 3rem; padding: 0 1.25rem; font: 16px/1.6 system-ui, sans-serif; color: var(--scalar-color-1); background: var(--scalar-background-1); border-bottom: 1px solid var(--scalar-border-color); }
.bar a { color: inherit; }
.bar b { margin-right: .5rem; }
.bar span { margin-left: auto; font-size: 13px; color: var(--scalar-color-2); }
@media (max-width: 48rem) { .bar span { display: none; } }
</style>
</head>
<body>
<nav class="bar"><b>infer</b><a href="/docs/guides">Guides</a><a href="/docs/configuration">Configuration</a><span>Signed in to the <a href="/console/">console</a>? Requests without a token use your session.</span></nav>
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/**
 * Starts the reference. A separate file, so that the page needs no inline script. Requests without a token carry the header
 * with which the server accepts the session of the console: a page of another origin cannot send it.
 */
const start = `const send = window.fetch.bind(window)
window.fetch = (input, init) => {
  const request = new Request(input, init)
  const token = /^Bearer +(\\S+)/.exec(request.headers.get('authorization') ?? '')?.[1]
  if (token || request.headers.has('x-api-key') || new URL(request.url).origin !== location.origin) return send(request)
  request.headers.delete('authorization')
  request.headers.set('x-infer-console', '1')
  return send(request)
}
Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  hideModels: true,
  showDeveloperTools: 'never',
  persistAuth: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: 'token' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})
`

const route = routeOf({ tag: 'System' })

/** The routes of the reference and of the schemas. `all` returns the table of all routes, including these. */
export function referenceRoutes(all: () => readonly Route[]): Route[] {
  let description: string | undefined
  let schema: string | undefined
  return [
    route('GET /openapi.json', 'public', {
      summary: 'Get API description',
      description: 'This API as OpenAPI 3.1, for the reference at `/docs`, client generators and other tools.',
      media: ['application/json'],
      answer: ownPage(exchange => exchange.send(200, (description ??= describeApi(all())))),
    }),
    route('GET /infer.schema.json', 'public', {
      summary: 'Get configuration schema',
      description:
        'JSON Schema of `infer.yaml`. Editors check the file and complete keys with `# yaml-language-server: $schema=<server>/infer.schema.json` as its first line.',
      media: ['application/json'],
      answer: ownPage(exchange => exchange.send(200, (schema ??= JSON.stringify(configSchema())))),
    }),
    route('GET /docs', 'public', {
      summary: 'Show reference',
      answer: ownPage(exchange => exchange.send(200, referencePage, 'text/html; charset=utf-8', referenceHeaders)),
    }),
    route('GET /docs/start.js', 'public', {
      summary: 'Get start script of the reference',
      answer: ownPage(exchange => exchange.send(200, start, 'text/javascript; charset=utf-8')),
    }),
    route('GET /docs/scalar.js', 'public', {
      summary: 'Get program of the reference',
      answer: ownPage(async exchange =>
        exchange.send(200, await readLargeText('docs/scalar.js'), 'text/javascript; charset=utf-8', [
          'cache-control',
          'public, max-age=86400',
        ]),
      ),
    }),
    route('GET /docs/grafana.json', 'public', {
      summary: 'Get the Grafana dashboard',
      answer: ownPage(exchange => exchange.send(200, readAsset('docs/grafana.json'))),
    }),
    route('GET /docs/alerts.yaml', 'public', {
      summary: 'Get the alert rules for Prometheus',
      answer: ownPage(exchange => exchange.send(200, readAsset('docs/alerts.yaml'), 'application/yaml')),
    }),
  ]
}

/** Renders the API description. Called at the first request for it, so that the start does not take longer. */
function describeApi(routes: readonly Route[]) {
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
