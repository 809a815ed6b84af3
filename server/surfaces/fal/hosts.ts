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
