import type { IncomingMessage, ServerResponse } from 'node:http'
import { H3, type H3Event } from 'h3'
import { Failure } from '../../core/failure.ts'
import { openBaseAddresses } from './base-address.ts'
import { decoded, requestPath } from './path.ts'
import type { Route } from './request/route.ts'

/** One request: the node request and response, and the parameters of the path. */
export interface RequestEvent {
  req: IncomingMessage
  res: ServerResponse
  params: Record<string, string>
}

export interface HttpAppOptions<E extends RequestEvent> {
  routes: readonly Route[]
  /** Creates the event of a request. */
  begin: (req: IncomingMessage, res: ServerResponse) => E
  /** Answers a request that matched the route. What it throws goes to `onError`. */
  handle: (route: Route, event: E) => void | Promise<void>
  /** Returns a more specific failure for a URL without a route; undefined for the general one. */
  explain: (url: string, request: string) => Failure | undefined
  /** Answers a request with an error. Must not throw. */
  onError: (thrown: unknown, event: E) => void
  /** Runs after every request, answered or failed. Must not throw. */
  end: (event: E) => void
}

/** What h3 returns where no route matches. */
const notFound = Symbol.for('h3.notFound')

/**
 * Opens the H3 app with all routes and their aliases, as a listener for a node server. Each request gets the smallest
 * event that h3's router needs, and handlers use the node request and response: the `Request`, `Headers` and URL of
 * h3's own event take 12 µs per request and load all of `fetch`, 6 MB at rest.
 */
export function openHttpApp<E extends RequestEvent>(options: HttpAppOptions<E>) {
  const { routes, begin, handle, explain, onError, end } = options
  const baseAddress = openBaseAddresses(routes.flatMap(({ path, aliases = [] }) => [path, ...aliases]))
  const app = new H3({ silent: true, onError: (error, event) => onError(error, own<E>(event)) })
  const methods = new Map<string, Set<string>>()
  for (const route of routes)
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const allowed = methods.get(path) ?? new Set()
      methods.set(path, allowed)
      for (const method of route.method === 'GET' ? (['GET', 'HEAD'] as const) : [route.method]) {
        allowed.add(method)
        app.on(method, path, event => {
          const request = own<E>(event)
          if (event.context.params) request.params = decoded(event.context.params)
          return handle(route, request)
        })
      }
    }
  for (const [path, allowed] of methods)
    app.all(path, event => {
      throw methodNotAllowed(own<E>(event), allowed)
    })

  const fail = (thrown: unknown, event: H3Event) => app.config.onError!(thrown as Parameters<OnError>[0], event)

  async function answer(event: H3Event) {
    try {
      if ((await app.handler(event)) === notFound) throw unknownUrl(own<E>(event), explain, baseAddress)
    } catch (thrown) {
      void fail(thrown, event)
    } finally {
      end(own<E>(event))
    }
  }

  return {
    /** Answers a request by its route. Never throws. */
    answer(req: IncomingMessage, res: ServerResponse): void {
      const pathname = requestPath(req.url ?? '/')
      const event = eventOf(app, begin(req, res), pathname)
      if (pathname !== undefined) void answer(event)
      else void fail(new Failure('invalid_value', 'The URL is malformed.'), event)
    },
    /** Answers a request with an error before any route is looked up. */
    refuse(req: IncomingMessage, res: ServerResponse, failure: Failure): void {
      void fail(failure, eventOf(app, begin(req, res), '/'))
    },
  }
}
export type HttpApp = ReturnType<typeof openHttpApp>

type OnError = NonNullable<H3['config']['onError']>

/** Returns infer's event, which is the `runtime.node` of h3's event. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- each app has events of one kind only
const own = <E extends RequestEvent>(event: H3Event) => event.runtime!.node as unknown as E

/** Creates an event with only what h3's router and dispatcher read. */
const eventOf = (app: H3, node: RequestEvent, pathname = '/') =>
  ({
    app,
    context: {},
    req: { method: node.req.method },
    url: { pathname },
    runtime: { node },
  }) as unknown as H3Event

function methodNotAllowed({ req, res }: RequestEvent, allowed: ReadonlySet<string>) {
  res.setHeader('allow', [...allowed].join(', '))
  const possible = [...allowed].filter(name => name !== 'HEAD').join(' or ')
  return new Failure('method_not_allowed', `${req.method} is not supported here. Use ${possible}.`)
}

function unknownUrl(
  { req: { method = 'GET', url = '/' } }: RequestEvent,
  explain: HttpAppOptions<RequestEvent>['explain'],
  baseAddress: (path: string) => string | undefined,
): Failure {
  const path = url.split('?')[0]!
  const request = `${method} ${path.slice(0, 200)}`
  const hint = baseAddress(path) ?? 'The reference is at /docs.'
  return explain(url, request) ?? new Failure('unknown_url', `Invalid URL (${request}). ${hint}`)
}
