import { isIP } from 'node:net'
import type { Config } from '../models/config.ts'
import { isPublic, isWithin, type Network, networkOf } from '../network-address.ts'

/** Why nothing was fetched: for the log only. Who sends an address learns nothing about what is behind it. */
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

/** The one parser of addresses: what it takes for the host is what is looked at and what is connected to. Pure; throws. */
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

/** Whether a connection may go there: to public addresses on few ports, to those that are allowed on any. */
export const mayReach = (address: string, port: number, { allowed, ports }: UrlRules): boolean =>
  isWithin(address, allowed) || (isPublic(address) && ports.includes(port))

export const portOf = (url: URL): number => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

/** Whether an entry of `allowed_hosts` means this host; `*.example.com` means every name below it. */
function covers(entry: string, host: string): boolean {
  const [wanted, name] = [entry.toLowerCase(), host.replace(/\.$/, '')]
  return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === wanted
}
