import { randomBytes } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { readAsset } from '../../core/assets.ts'
import { Failure } from '../../core/failure.ts'
import { string } from '../../core/schemas/fields.ts'
import { ownPage } from '../http/answer/own-page.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import { type Route, routeOf } from '../http/request/route.ts'

const route = routeOf({ tag: 'System' })
const conversationRoute = routeOf({ tag: 'Conversations' })
const switchedOff = () => new Failure('not_found', "The console is switched off by 'console: false' in infer.yaml.")

/** What the build says about the console. */
interface Manifest {
  page: string
  /** The page behind a link to a conversation. */
  linkPage: string
  /** Elements that load the scripts of a page, by the first part of its path, together with those of the console. */
  preloads: Record<string, string>
  /** The content type of each file. */
  files: Record<string, string>
}

/** Returns the routes of the web console. Its files have a hash in their name; every other path is a page of it. */
export function consoleRoutes({ config }: Owners<'config'>): Route[] {
  let manifest: Manifest | undefined
  const read = () => (manifest ??= JSON.parse(Buffer.from(readAsset('console/manifest.json')).toString()) as Manifest)
  return [
    route('GET /console', 'public', {
      aliases: ['/console/**:path'],
      summary: 'Show console',
      media: ['text/html'],
      answer: ownPage(exchange => {
        const { path = '' } = exchange.params
        if (!config.console) throw switchedOff()
        if (path.startsWith('assets/')) sendFile(exchange, path, read())
        else sendPage(exchange, path, read())
      }),
    }),
    conversationRoute('GET /shared/:token', 'public', {
      summary: 'Get shared conversation page',
      description: 'Shows the page of a link to a conversation. It reads `/shared/{token}/conversation`.',
      media: ['text/html'],
      errorCodes: ['not_found'],
      params: z.object({ token: string('The token of the link, which is the right to read.') }),
      answer(exchange) {
        if (!config.console) throw switchedOff()
        sendHtml(exchange, read().linkPage, ['x-robots-tag', 'noindex'])
      },
    }),
    route('GET /', 'public', {
      summary: 'Show console or reference',
      media: ['text/html'],
      answer: ownPage(exchange => {
        const to = config.console ? '/console' : '/docs'
        exchange.send(302, '', 'text/plain; charset=utf-8', ['location', to, 'cache-control', 'no-store'])
      }),
    }),
  ]
}

const forEver = ['cache-control', 'public, max-age=31536000, immutable']

/** Sends a file, compressed unless it is a font. Browsers keep it for ever, because another content has another name. */
function sendFile(exchange: ClientExchange, path: string, { files }: Manifest): void {
  const type = files[path]
  if (type === undefined)
    throw new Failure('not_found', 'The console has no such file. It may have been updated: reload the page.')
  if (type.startsWith('font/')) return exchange.send(200, readAsset(`console/${path}`), type, forEver)
  const accepted = [exchange.req.headers['accept-encoding'] ?? []].flat().join()
  const [encoding, bytes] = /\bbr\b/.test(accepted)
    ? (['br', readAsset(`console/${path}.br`)] as const)
    : ([/\bgzip\b/.test(accepted) ? 'gzip' : undefined, readAsset(`console/${path}.gz`)] as const)
  exchange.send(200, encoding === undefined ? gunzipSync(bytes) : bytes, type, [
    ...forEver,
    'vary',
    'accept-encoding',
    ...(encoding === undefined ? [] : ['content-encoding', encoding]),
  ])
}

/** Sends the page at a path below the console. */
function sendPage(exchange: ClientExchange, path: string, { page, preloads }: Manifest): void {
  const name = path.split('/')[0] || 'overview'
  const preload = Object.hasOwn(preloads, name) ? preloads[name]! : ''
  sendHtml(exchange, page.replace('{page-preload}', preload))
}

/** Sends a page. The nonce lets the code editor add its styles; scripts come from this server only, none is inline. */
function sendHtml(exchange: ClientExchange, page: string, more: readonly string[] = []): void {
  const nonce = randomBytes(16).toString('base64')
  exchange.send(200, page.replace('{nonce}', nonce), 'text/html; charset=utf-8', [
    ...more,
    'content-security-policy',
    `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-frame-options',
    'DENY',
    'referrer-policy',
    'no-referrer',
    'cross-origin-opener-policy',
    'same-origin',
    'cache-control',
    'no-store',
  ])
}
