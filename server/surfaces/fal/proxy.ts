import type { IncomingMessage } from 'node:http'

/** The root paths of fal's hosts on this server. URLs of other hosts are refused: nothing is ever fetched. */
const roots: Readonly<Record<string, string>> = {
  'queue.fal.run': '/fal/queue',
  'fal.run': '/fal/run',
  'rest.fal.ai': '/fal/rest',
}

export const targetHeader = 'x-fal-target-url'

/** Returns the path and query on this server for a URL of fal; undefined for any other URL. */
export function pathOfTarget(target: string): string | undefined {
  if (target.length > 8_000 || !URL.canParse(target)) return undefined
  const { protocol, host, username, password, pathname, search } = new URL(target)
  if (protocol !== 'https:' || username !== '' || password !== '' || !Object.hasOwn(roots, host)) return undefined
  return roots[host] + pathname + search
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
