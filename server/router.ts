import type { IncomingMessage, ServerResponse } from 'node:http'
import { addRoute, createRouter, findRoute } from 'rou3'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import { refuse } from './errors.ts'
import type { Route } from './route.ts'
import { routes } from './routes.ts'

/** Answers one matched request. Never rejects. */
export type Dispatcher = (
  route: Route,
  params: Record<string, string>,
  req: IncomingMessage,
  res: ServerResponse,
) => Promise<void>

/** What stands at a path: a route, or the methods that there are where none was for that of the request. */
type Place = { route: Route } | { allowed: ReadonlySet<string> }

/**
 * All routes and their aliases in h3's router, without h3's event around each request: its Request, Headers and URL are
 * for code that runs anywhere. Here nothing reads them, and they load the whole of `fetch`, 6 MB at rest, and take
 * 12 µs a request. What matches no route is told apart: malformed, wrong method, or no such URL.
 */
export function openRouter(dispatch: Dispatcher): (req: IncomingMessage, res: ServerResponse) => void {
  const router = createRouter<Place>()
  const methods = new Map<string, Set<string>>()
  for (const route of routes)
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const allowed = methods.get(path) ?? new Set()
      methods.set(path, allowed)
      for (const method of route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]) {
        allowed.add(method)
        addRoute(router, method, path, { route })
      }
    }
  for (const [path, allowed] of methods) addRoute(router, '', path, { allowed })

  return (req, res) => {
    const { method = 'GET', url = '/' } = req
    const path = pathOf(url)
    if (path === undefined) return refuse(res, new Failure('invalid_value', 'The URL is malformed.'), newId('req'))
    const found = findRoute(router, method, path)
    if (!found) {
      const message = `Invalid URL (${method} ${url.split('?')[0]!.slice(0, 200)}). The reference is at /docs.`
      return refuse(res, new Failure('unknown_url', message), newId('req'))
    }
    if ('route' in found.data) return void dispatch(found.data.route, decoded(found.params), req, res)
    const { allowed } = found.data
    res.setHeader('allow', [...allowed].join(', '))
    const possible = [...allowed].filter(name => name !== 'HEAD').join(' and ')
    return refuse(
      res,
      new Failure('method_not_allowed', `${method} is not possible here; ${possible} is.`),
      newId('req'),
    )
  }
}

/** Paths that need no reading: nothing is escaped in them and no segment begins with a dot. */
const plain = /^(?:\/[\w~:@!$&'()*+,;=-][\w.~:@!$&'()*+,;=-]*)+$/
/** Of characters that mean nothing in a path, so that they mean the same escaped. */
const needlessEscape = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi

/**
 * The path of a request as routes are written, read as the URL standard has it: without an origin or dot segments,
 * and with no letter, digit or `-._~` escaped. Undefined when it is none, or what is escaped is not UTF-8.
 */
export function pathOf(url: string): string | undefined {
  const end = url.indexOf('?')
  const written = end < 0 ? url : url.slice(0, end)
  if (plain.test(written)) return written
  const path = URL.parse(written.startsWith('/') ? `http://localhost${written}` : written)?.pathname
  if (!path?.includes('%')) return path
  try {
    decodeURI(path)
  } catch {
    return undefined
  }
  return path.replace(needlessEscape, escape => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escape
  })
}

/** Model ids with a slash come encoded or raw; either way the handler sees the id. */
function decoded(params: Record<string, string> | undefined): Record<string, string> {
  if (!params) return {}
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)]
      } catch {
        return [name, value]
      }
    }),
  )
}

/** Trailing and doubled slashes are ignored; the query is left as it is. */
export function tidy(url: string): string {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  if (!path.includes('//') && (path.length === 1 || !path.endsWith('/'))) return url
  const clean = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
  return at < 0 ? clean : clean + url.slice(at)
}
