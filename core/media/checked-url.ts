import { lookup as lookUp } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { Config } from '../models/config.ts'
import { isInNetworks, isPublic, type Network, networkOf } from '../network-address.ts'

/** Why a URL was not fetched. For the log only: callers must not learn anything about our network. */
export class UrlRefused extends Error {}

export interface UrlRules {
  allowed: readonly Network[]
  hosts: readonly string[] | undefined
  ports: readonly number[]
}

export const urlRules = (
  media: Pick<Config['media'], 'allowed_addresses' | 'allowed_hosts'>,
  ports: readonly number[],
): UrlRules => ({ allowed: media.allowed_addresses.map(networkOf), hosts: media.allowed_hosts, ports })

/** Parses and checks a URL. Its host is the one that is connected to, because nothing else parses URLs. Pure; throws. */
export function checkedUrl(text: string, from: URL | undefined, rules: UrlRules): URL {
  const url = new URL(text, from)
  const { protocol, username, password, hostname } = url
  if (protocol !== 'http:' && protocol !== 'https:') throw new UrlRefused('scheme')
  if (from?.protocol === 'https:' && protocol !== 'https:') throw new UrlRefused('from https to http')
  if (username !== '' || password !== '') throw new UrlRefused('user name')
  if (rules.allowed.length === 0 && !rules.ports.includes(portOf(url))) throw new UrlRefused('port')
  const literal = hostname.replace(/^\[|\]$/g, '')
  if (isIP(literal) !== 0 && !mayReach(literal, portOf(url), rules)) throw new UrlRefused('address')
  if (rules.hosts && !rules.hosts.some(host => covers(host, hostname))) throw new UrlRefused('host')
  return url
}

/** Whether a connection is allowed: to public addresses on `ports`, to addresses in `allowed` on any port. */
const mayReach = (address: string, port: number, { allowed, ports }: UrlRules): boolean =>
  isInNetworks(address, allowed) || (isPublic(address) && ports.includes(port))

export const portOf = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

/** Whether an entry of `allowed_hosts` matches this host; `*.example.com` matches every name below it. */
function covers(entry: string, host: string): boolean {
  const [pattern, name] = [entry.toLowerCase(), host.replace(/\.$/, '')]
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern
}

export interface Answer {
  address: string
  family: number
}
/** Resolves all addresses of a name, like `dns.lookup` with `all`. */
export type Resolve = (name: string, done: (cause: Error | null, answers: Answer[]) => void) => void

export const resolveAll: Resolve = (name, done) => lookUp(name, { all: true }, done)

/**
 * The name resolution of one connection: all addresses of the name must be allowed, and the connection goes to one of
 * them, so that a second DNS answer cannot change the target. A literal address does not pass here: check the URL.
 */
export const checkedLookup =
  (port: number, rules: UrlRules, resolve: Resolve): LookupFunction =>
  (name, _options, done) => {
    resolve(name, (cause, answers) => {
      if (cause) return done(cause, [])
      const refused = answers.length === 0 || answers.some(({ address }) => !mayReach(address, port, rules))
      return refused ? done(new UrlRefused('address'), []) : done(null, answers)
    })
  }
