import type { IncomingMessage } from 'node:http'

/** Where fal's own hosts lead here. An address of any other host is refused: nothing is ever fetched. */
const roots: Readonly<Record<string, string>> = {
  'queue.fal.run': '/fal/queue',
  'fal.run': '/fal/run',
  'rest.fal.ai': '/fal/rest',
}

export const targetHeader = 'x-fal-target-url'

/** The path and query here that stand for one of fal's addresses; undefined for any other address. */
export function pathOfTarget(target: string): string | undefined {
  if (target.length > 8_000 || !URL.canParse(target)) return undefined
  const { protocol, host, username, password, pathname, search } = new URL(target)
  if (protocol !== 'https:' || username !== '' || password !== '' || !Object.hasOwn(roots, host)) return undefined
  return roots[host] + pathname + search
}

/**
 * The URL that a request is really for. fal's clients send what is meant for fal's hosts to one address, with the real
 * one in a header; here it is the same request to the route that stands for it, with the method, the body and the token
 * that it came with. So it is that route's scope and limits that count.
 */
export function unproxied(url: string, headers: IncomingMessage['headers']): string {
  if (!/^\/fal\/proxy(\?|$)/.test(url)) return url
  const target = headers[targetHeader]
  return (typeof target === 'string' ? pathOfTarget(target) : undefined) ?? url
}
