import type { IncomingMessage } from 'node:http'
import { isInNetworks, type Network, networkOf } from '../../../core/network-address.ts'
import { peerOf } from './peer.ts'

/** Parsed once for each configuration. */
const parsed = new WeakMap<readonly string[], Network[]>()

function networksOf(proxies: readonly string[]): readonly Network[] {
  let networks = parsed.get(proxies)
  if (!networks) {
    networks = proxies.map(networkOf)
    parsed.set(proxies, networks)
  }
  return networks
}

/** Returns the last element of a list in a header: the one that the nearest proxy has added. */
const lastOf = (value: string | string[] | undefined) => [value].flat().at(-1)?.split(',').at(-1)?.trim() || undefined

const isTrusted = (req: IncomingMessage, proxies: readonly string[]) =>
  proxies.length > 0 && isInNetworks(peerOf(req).remoteAddress ?? '', networksOf(proxies))

/**
 * Returns the scheme and host that a request was sent to, such as `https://gpu.example.com`: as a trusted proxy reports
 * them in X-Forwarded-Proto and X-Forwarded-Host, else those of the connection and the Host header.
 */
export function requestOrigin(req: IncomingMessage, proxies: readonly string[]): string {
  const own = peerOf(req).encrypted ? 'https' : 'http'
  const trusted = isTrusted(req, proxies)
  const scheme = trusted ? lastOf(req.headers['x-forwarded-proto'])?.toLowerCase() : undefined
  return `${scheme === 'http' || scheme === 'https' ? scheme : own}://${forwardedHost(req, proxies) ?? req.headers.host ?? ''}`
}

/** Returns the host that a trusted proxy reports; undefined if none does. Check it like any Host header. */
export const forwardedHost = (req: IncomingMessage, proxies: readonly string[]): string | undefined =>
  isTrusted(req, proxies) ? lastOf(req.headers['x-forwarded-host']) : undefined

/** Returns the client's address: the last in X-Forwarded-For that is no trusted proxy, else that of the connection. */
export function clientAddress(req: IncomingMessage, proxies: readonly string[]): string {
  const address = peerOf(req).remoteAddress ?? ''
  if (!isTrusted(req, proxies)) return address
  const chain = [req.headers['x-forwarded-for']].flat().join(',').split(',')
  const networks = networksOf(proxies)
  return (
    chain
      .map(one => one.trim())
      .filter(one => one !== '')
      .findLast(one => !isInNetworks(one, networks)) ?? address
  )
}
