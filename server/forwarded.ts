import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { isWithin, type Network, networkOf } from '../core/network-address.ts'

/** Read once for each configuration. */
const parsed = new WeakMap<readonly string[], Network[]>()

function networksOf(proxies: readonly string[]): readonly Network[] {
  let networks = parsed.get(proxies)
  if (!networks) {
    networks = proxies.map(networkOf)
    parsed.set(proxies, networks)
  }
  return networks
}

/** The last element of a list in a header: what the nearest proxy has added. */
const lastOf = (value: string | string[] | undefined): string | undefined =>
  [value].flat().at(-1)?.split(',').at(-1)?.trim() || undefined

const isTrusted = (req: IncomingMessage, proxies: readonly string[]): boolean =>
  proxies.length > 0 && isWithin(req.socket.remoteAddress ?? '', networksOf(proxies))

/**
 * The scheme and host that a request was sent to, such as `https://gpu.example.com`: as a trusted proxy reports it in
 * X-Forwarded-Proto and X-Forwarded-Host, else by the connection and the Host header.
 */
export function originOf(req: IncomingMessage, proxies: readonly string[]): string {
  const own = (req.socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
  const trusted = isTrusted(req, proxies)
  const scheme = trusted ? lastOf(req.headers['x-forwarded-proto'])?.toLowerCase() : undefined
  return `${scheme === 'http' || scheme === 'https' ? scheme : own}://${forwardedHost(req, proxies) ?? req.headers.host ?? ''}`
}

/** The Host that a trusted proxy reports; undefined where there is none. It must be checked like any Host. */
export const forwardedHost = (req: IncomingMessage, proxies: readonly string[]): string | undefined =>
  isTrusted(req, proxies) ? lastOf(req.headers['x-forwarded-host']) : undefined

/** The address of the client: the last in X-Forwarded-For that is no trusted proxy, else that of the connection. */
export function clientAddress(req: IncomingMessage, proxies: readonly string[]): string {
  const address = req.socket.remoteAddress ?? ''
  if (!isTrusted(req, proxies)) return address
  const chain = [req.headers['x-forwarded-for']].flat().join(',').split(',')
  const networks = networksOf(proxies)
  return (
    chain
      .map(one => one.trim())
      .filter(one => one !== '')
      .findLast(one => !isWithin(one, networks)) ?? address
  )
}
