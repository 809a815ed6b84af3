import type { IncomingMessage, ServerResponse } from 'node:http'
import { H3, type H3Event } from 'h3'
import { Failure } from '../core/failure.ts'
import { newId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
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

/** h3 is told by this value that the response was written on the Node side. */
const handled = Symbol.for('h3.handled')

/** h3 ends the response as soon as it hears of it, so it hears of it when there is nothing left to write. */
const over = (res: ServerResponse): symbol | Promise<symbol> =>
  res.writableEnded || res.destroyed ? handled : new Promise(done => res.once('close', () => done(handled)))

const nodeOf = (event: H3Event) => event.runtime!.node as { req: IncomingMessage; res: ServerResponse }

/** All routes and their aliases in h3's router; what matches none is told apart: wrong method, or no such URL. */
export function openRouter(dispatch: Dispatcher, log: Log): H3 {
  const app = new H3({
    onError(error, event) {
      const malformed = error.status < 500
      if (!malformed) log.error('The router failed', {}, error.cause ?? error)
      refuse(
        nodeOf(event).res,
        malformed ? new Failure('invalid_value', 'The URL is malformed.') : Failure.from(error),
        newId('req'),
      )
      return handled
    },
  })
  const methods = new Map<string, Set<string>>()
  for (const route of routes)
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      methods.set(path, (methods.get(path) ?? new Set()).add(route.method))
      const handler = (event: H3Event) => {
        const { req, res } = nodeOf(event)
        return dispatch(route, decoded(event.context.params), req, res).then(() => over(res))
      }
      app.on(route.method, path, handler)
      if (route.method === 'GET') app.on('HEAD', path, handler)
    }
  for (const [path, allowed] of methods)
    app.all(path, event => {
      const { req, res } = nodeOf(event)
      res.setHeader('allow', [...allowed, ...(allowed.has('GET') ? ['HEAD'] : [])].join(', '))
      const message = `${req.method} is not possible here; ${[...allowed].join(' and ')} is.`
      refuse(res, new Failure('method_not_allowed', message), newId('req'))
      return handled
    })
  app.all('/**', event => {
    const { req, res } = nodeOf(event)
    const path = (req.url ?? '/').split('?')[0]!.slice(0, 200)
    refuse(
      res,
      new Failure('unknown_url', `Invalid URL (${req.method} ${path}). The reference is at /docs.`),
      newId('req'),
    )
    return handled
  })
  return app
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
