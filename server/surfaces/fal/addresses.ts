import type { IncomingMessage } from 'node:http'
import { hostName } from '../../http/connection/host.ts'

/** fal's host names, and the fallback names of its Python client, with their root paths. */
const known: Readonly<Record<string, string>> = {
  'fal.run': '/fal/run',
  'falrun.com': '/fal/run',
  'queue.fal.run': '/fal/queue',
  'queue.falrun.com': '/fal/queue',
  'rest.fal.ai': '/fal/rest',
  'v3.fal.media': '/fal/cdn',
}

/**
 * Returns the host names at whose root fal's clients expect models, with the paths of those roots on this server: fal's
 * own names, and pairs of `<name>` and `queue.<name>`, as far as `allowed_hosts` has them.
 */
export function falRoots(allowedHosts: readonly string[]): ReadonlyMap<string, string> {
  const names = new Set(allowedHosts.map(host => hostName(host) ?? ''))
  const roots = new Map<string, string>()
  for (const name of names) {
    const root = known[name]
    if (root !== undefined) roots.set(name, root)
    else if (names.has(`queue.${name}`)) roots.set(name, '/fal/run').set(`queue.${name}`, '/fal/queue')
  }
  return roots
}

/**
 * Prefixes the URL with the root path of the request's host. Paths of this API itself (`routed` has their first
 * segments) are unchanged under every host name. So are GET and HEAD requests to the host for direct calls, which has
 * no routes for them.
 */
export function belowRoot(
  url: string,
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  roots: ReadonlyMap<string, string>,
  routed: ReadonlySet<string>,
): string {
  const root = roots.size === 0 ? undefined : roots.get(hostName(headers.host ?? '') ?? '')
  if (root === undefined) return url
  if (root === '/fal/run' && (method === 'GET' || method === 'HEAD')) return url
  // Other paths below /files download files by id, and are routes of this API.
  if (root === '/fal/cdn' && /^\/files\/upload(\/|\?|$)/.test(url)) return root + url
  const first = /^\/([^/?]+)/.exec(url)?.[1]
  return first === undefined || routed.has(first) ? url : root + url
}

/** The hosts of targets, with their root paths on this server. Other hosts are refused: nothing is ever fetched. */
const targetRoots: Readonly<Record<string, string>> = {
  'queue.fal.run': '/fal/queue',
  'fal.run': '/fal/run',
  'rest.fal.ai': '/fal/rest',
}

export const targetHeader = 'x-fal-target-url'

/** Returns the path and query on this server for a URL of fal; undefined for any other URL. */
export function pathOfTarget(target: string): string | undefined {
  if (target.length > 8_000 || !URL.canParse(target)) return undefined
  const { protocol, host, username, password, pathname, search } = new URL(target)
  if (protocol !== 'https:' || username !== '' || password !== '' || !Object.hasOwn(targetRoots, host)) return undefined
  return targetRoots[host] + pathname + search
}

/**
 * Returns the URL of the request that a proxied request stands for. With a `proxyUrl`, fal's clients send requests for
 * fal's hosts to one URL, with the target in a header. The request is routed to its target with its method, body and
 * token, so the scope and limits of that route apply.
 */
export function unproxied(url: string, headers: IncomingMessage['headers']): string {
  if (!/^\/fal\/proxy(\?|$)/.test(url)) return url
  const target = headers[targetHeader]
  return (typeof target === 'string' ? pathOfTarget(target) : undefined) ?? url
}

const form = /^\/multipart\/([\w-]{1,4000})\/(\d{1,5}|complete)$/
const queryText = /^[\w=&%.+*-]*$/

/**
 * Returns the download URL with `&to=` at its end. fal's Python client appends `/multipart/<upload>/<part>` to that
 * URL, which is signed and so has a query: the appended text becomes the last parameter of the query.
 */
export const readableAddress = (readUrl: string): string => `${readUrl}&to=`

/** Returns the id of an upload in parts: the encoded query of the signed upload URL. */
export const uploadIdOf = (uploadUrl: string): string =>
  Buffer.from(uploadUrl.slice(uploadUrl.indexOf('?') + 1)).toString('base64url')

/** Returns the URL of the route that stores the part or joins the parts. Returns any other URL unchanged. */
export function partAddress(url: string): string {
  const at = url.indexOf('?')
  if (!url.startsWith('/files/') || !url.includes('&to=', at)) return url
  const [, upload, what] = form.exec(new URLSearchParams(url.slice(at + 1)).get('to') ?? '') ?? []
  if (upload === undefined) return url
  const query = Buffer.from(upload, 'base64url').toString('latin1')
  return queryText.test(query) ? `${url.slice(0, at)}/${what}?${query}` : url
}
