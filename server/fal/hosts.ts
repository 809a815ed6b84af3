import type { IncomingMessage } from 'node:http'
import { hostName } from '../host.ts'

/** fal's own names, and those to which its Python client turns when they cannot be reached. */
const known: Readonly<Record<string, string>> = {
  'fal.run': '/fal/run',
  'falrun.com': '/fal/run',
  'queue.fal.run': '/fal/queue',
  'queue.falrun.com': '/fal/queue',
  'rest.fal.ai': '/fal/rest',
  'v3.fal.media': '/fal/cdn',
}

/**
 * The names under which fal's clients find models at the root of the host, with the paths that stand for these roots:
 * fal's own names, and pairs `<name>` and `queue.<name>`, where `allowed_hosts` has them.
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
 * The URL below the root of the host that the request names. Paths of the API itself (`routed`: the first segments)
 * stay as they are under every name, and so does what is read at a host of models that run at once, where nothing is
 * read.
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
  // Files are read below /files as well, by their ids.
  if (root === '/fal/cdn' && /^\/files\/upload(\/|\?|$)/.test(url)) return root + url
  const first = /^\/([^/?]+)/.exec(url)?.[1]
  return first === undefined || routed.has(first) ? url : root + url
}
