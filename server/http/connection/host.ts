import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { Failure, invalid } from '../../../core/failure.ts'
import type { Config } from '../../../core/models/config.ts'

export interface HostRules {
  /** Names besides `localhost` and addresses, in lower case, each alone or with a port: `gpu.lan`, `gpu.lan:8443`. */
  allowed: ReadonlySet<string>
  /** The port of a Host header without one. */
  defaultPort: number
}

/** Returns the rules of a configuration. `secure`: whether clients use TLS. */
export function hostRulesOf(
  { allowed_hosts, public_url }: Pick<Config, 'allowed_hosts' | 'public_url'>,
  secure: boolean,
): HostRules {
  const allowed = new Set(allowed_hosts.map(host => host.toLowerCase()))
  if (public_url) allowed.add(hostName(new URL(public_url).host) ?? '')
  return { allowed, defaultPort: secure ? 443 : 80 }
}

/** Health checks of load balancers may send HTTP/1.0 without a Host header. */
const health = /^\/(?:livez|healthz|readyz)(?:\?|$)/

/**
 * Returns why a request must not be answered, or undefined. A web page can reach a local server only through a name
 * that it rebinds (DNS rebinding), so names must be listed and addresses are safe. Node accepts a second Host or
 * Authorization header and an absolute URL of another host; a proxy in front may have read the other one, so they are
 * refused.
 */
export function hostFailure(
  { rawHeaders, httpVersion, url = '/' }: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'url'>,
  rules: HostRules,
): Failure | undefined {
  let host: string | undefined
  let authorized = false
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') {
      if (host !== undefined) return malformed('The request has two Host headers. Send one.')
      host = rawHeaders[at + 1]!
    } else if (name.length === 13 && name.toLowerCase() === 'authorization') {
      if (authorized) return malformed('The request has two Authorization headers. Send one.', 'Authorization')
      authorized = true
    }
  }
  if (host === undefined) {
    if (httpVersion === '1.0' && health.test(url)) return undefined
    return new Failure('invalid_host', 'The request has no Host header. Send one that names this server.')
  }
  if (!url.startsWith('/') && url !== '*' && !isOfHost(url, host))
    return malformed('The request line names another host than the Host header. Send the path alone, or the same host.')
  return hostNameFailure(host, rules)
}

/** Returns why the server does not accept the name in a Host header, or undefined. */
export function hostNameFailure(host: string, rules: HostRules): Failure | undefined {
  const named = partsOf(host)
  if (!named) return new Failure('invalid_host', 'The Host header is malformed. Send name:port.')
  const { name, port = rules.defaultPort } = named
  if (name === 'localhost' || isIP(name) !== 0) return undefined
  if (rules.allowed.has(name) || rules.allowed.has(`${name}:${port}`)) return undefined
  const shown = name.slice(0, 100)
  return new Failure(
    'invalid_host',
    `This server does not accept the host name '${shown}'. Add it in infer.yaml: allowed_hosts: ['${shown}']`,
  )
}

const malformed = (message: string, param = 'Host') => invalid(param, message)

const form = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/

function partsOf(host: string): { name: string; port?: number } | undefined {
  const [, address, name = address, port] = form.exec(host) ?? []
  if (name === undefined) return undefined
  return { name: name.toLowerCase(), ...(port === undefined ? {} : { port: Number(port) }) }
}

/** Returns the name or address of a Host header without its port, in lower case; undefined when malformed. */
export const hostName = (host: string): string | undefined => partsOf(host)?.name

/** Whether an absolute URL names the host of the Host header. */
function isOfHost(url: string, host: string) {
  const target = URL.parse(url)
  const own = target && URL.parse(`${target.protocol}//${host}`)
  return (
    own !== null && own.host !== '' && target!.host === own.host && target!.username === '' && target!.password === ''
  )
}
