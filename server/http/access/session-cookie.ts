import type { IncomingMessage } from 'node:http'
import { sessionCredential } from '../../../core/accounts/sessions.ts'
import type { Config } from '../../../core/models/config.ts'
import { requestOrigin } from '../connection/forwarded.ts'

type Addresses = Pick<Config, 'public_url' | 'trusted_proxies'>

/**
 * Returns the origin of the page that sent the request. A proxy that ends TLS may be none that is trusted for its
 * headers; then a page at the host of `public_url` has the scheme of `public_url`.
 */
function pageOriginOf(req: IncomingMessage, { public_url, trusted_proxies }: Addresses) {
  const seen = requestOrigin(req, trusted_proxies)
  if (public_url === undefined) return seen
  const known = new URL(public_url)
  return new URL(seen.replace(/^https?:/, known.protocol)).origin === known.origin ? known.origin : seen
}

/**
 * The name of the cookie at this origin. It has the port, because browsers send the cookies of a host to all of its
 * ports, and two servers on one machine would end each other's sessions.
 */
function nameAt(origin: string) {
  const { port, protocol } = new URL(origin)
  return `${protocol === 'https:' ? '__Host-' : ''}infer_session${port && `_${port}`}`
}

/** Origins to which browsers send `Sec-Fetch-Site`: https, and this machine itself. */
const isTrustworthy = (origin: string) =>
  /^(https:|http:\/\/(localhost|[^/:]+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|$))/.test(origin)

/**
 * Whether a page of this server sent the request. A page of another origin cannot set the header `X-Infer-Console`
 * without a preflight, which is refused, and browsers name its relation in `Sec-Fetch-Site`. They leave that out at
 * `http://` origins other than this machine; then the header and an equal `Origin`, if there is one, must do.
 */
export function isFromConsole(req: IncomingMessage, addresses: Addresses): boolean {
  if (req.headers['x-infer-console'] !== '1') return false
  const own = pageOriginOf(req, addresses)
  const { origin, 'sec-fetch-site': site } = req.headers
  if (origin !== undefined && origin !== own) return false
  return site === undefined ? !isTrustworthy(own) : site === 'same-origin'
}

/** Returns the id of the session in the cookie of the request; undefined without one. */
export function sessionIdOf(req: IncomingMessage, addresses: Addresses): string | undefined {
  const start = `${nameAt(pageOriginOf(req, addresses))}=`
  const found = req.headers.cookie?.split('; ').find(cookie => cookie.startsWith(start))
  return found?.slice(start.length) || undefined
}

/** Returns the credential of the session, if a page of this server sent its cookie and the console is switched on. */
export function sessionCredentialOf(req: IncomingMessage, config: Addresses & Pick<Config, 'console'>) {
  if (req.headers.cookie === undefined || !config.console || !isFromConsole(req, config)) return undefined
  const id = sessionIdOf(req, config)
  return id === undefined ? undefined : sessionCredential(id)
}

/** Returns the `Set-Cookie` header of a session; with an empty id the one that removes the cookie. */
export function sessionCookie(req: IncomingMessage, id: string, addresses: Addresses): string {
  const origin = pageOriginOf(req, addresses)
  return [
    `${nameAt(origin)}=${id}`,
    'HttpOnly',
    'SameSite=Strict',
    'Path=/',
    // The server decides when a session ends; the cookie ends with the browser's own session.
    ...(id === '' ? ['Max-Age=0'] : []),
    ...(origin.startsWith('https:') ? ['Secure'] : []),
  ].join('; ')
}
