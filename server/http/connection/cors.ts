import type { IncomingMessage } from 'node:http'
import { Failure } from '../../../core/failure.ts'

/** The paths to which `cors.origins` applies, aliases included. Signed addresses of files are open to every page. */
const opened = /^\/(std|v1|v2|slug|fal|anthropic|ollama|replicate|api|mcp|rerank|score)(\/|\?|$)/
/** A list of header names, as browsers send it. */
const headerNames = /^[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*$/
const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
/** Browsers keep the answer to a preflight for two hours at most. */
const preflightSeconds = '7200'

/** The decision about a request from a page of another origin. */
export interface CorsDecision {
  /** Response headers, flat. */
  headers: readonly string[]
  /** The request is a preflight, and `headers` are the whole answer. */
  preflight: boolean
}

const untouched: CorsDecision = { headers: [], preflight: false }

/**
 * Decides which pages of other origins may use the API: those of the listed origins, or all where the list has `*`.
 * Neither cookies nor other ambient credentials are accepted, so a page needs a token. Throws Failure
 * `origin_not_allowed` for a preflight from another origin; other requests are answered without the headers, and the
 * browser withholds the answer from the page.
 */
export function openCors(origins: readonly string[]) {
  const every = origins.includes('*')
  const listed = new Set(origins.map(normalized))

  return ({ method, url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): CorsDecision => {
    const { origin } = headers
    if (origin === undefined || !opened.test(url)) return untouched
    const preflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
    if (!every && !listed.has(origin)) {
      if (preflight) throw notAllowed(origin)
      return untouched
    }
    const allowed = ['access-control-allow-origin', every ? '*' : origin, 'vary', 'origin']
    return preflight
      ? { headers: [...allowed, ...preflightHeaders(headers)], preflight }
      : // `*` exposes every header but Authorization, also headers that are added later.
        { headers: [...allowed, 'access-control-expose-headers', '*'], preflight }
  }
}

function preflightHeaders(headers: IncomingMessage['headers']) {
  const requested = headers['access-control-request-headers']
  const answer = [
    'access-control-allow-methods',
    methods,
    'access-control-allow-headers',
    // `*` does not cover Authorization.
    requested !== undefined && headerNames.test(requested) ? requested : 'authorization, content-type',
    'access-control-max-age',
    preflightSeconds,
  ]
  // Browsers that send this header reach private addresses from a public page only with this answer.
  if (headers['access-control-request-private-network'] === 'true')
    answer.push('access-control-allow-private-network', 'true')
  return answer
}

/**
 * Throws Failure `origin_not_allowed` for a request from a page of another origin that is not listed. For protocols with
 * which a page could use the server even though the browser withholds the answers from it.
 */
export function requireOrigin({ headers }: Pick<IncomingMessage, 'headers'>, own: string, origins: readonly string[]) {
  const { origin } = headers
  if (origin === undefined || origins.includes('*') || normalized(origin) === normalized(own)) return
  if (!origins.some(one => normalized(one) === origin)) throw notAllowed(origin)
}

/** Returns an origin as browsers send it: lower case, without a default port. */
function normalized(origin: string) {
  const lower = origin.toLowerCase()
  const standard = URL.canParse(lower) ? new URL(lower).origin : 'null'
  return standard === 'null' ? lower : standard
}

const notAllowed = (origin: string) =>
  new Failure(
    'origin_not_allowed',
    `Pages of '${origin.slice(0, 100)}' may not use this API. Add the origin to cors.origins in infer.yaml and restart the server.`,
  )
