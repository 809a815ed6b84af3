import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { request as askSecurely, createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { newLaunchKey } from '../../../../gpu/launcher/launch-key.ts'
import { actionOf, type TestRole } from './_role.ts'

interface Stored {
  kind: string
  metadata: {
    name: string
    namespace?: string
    uid: string
    resourceVersion: string
    creationTimestamp?: string
    labels?: Record<string, string>
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
    ownerReferences?: { uid: string }[]
    finalizers?: string[]
  }
  spec?: { nodeName?: string; [name: string]: unknown }
  status?: Record<string, unknown>
  involvedObject?: { uid?: string; name?: string }
  type?: string
  [name: string]: unknown
}
interface Change {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: Stored
  collection: string
  version: number
}

/** Those with all rights, and with those of a role. */
export const tokens = { administrator: 'of-the-test', infer: 'of-infer' } as const
export type FakeApiServer = Awaited<ReturnType<typeof startApiServer>>

/**
 * An API server with the few objects and verbs that infer and a kubelet use, as Kubernetes answers them: lists in pages, watches
 * from a version, deletion with a grace, status and binding. Objects are kept in memory. The token of infer has the rights of the
 * role, another one has all.
 */
export async function startApiServer(role: TestRole) {
  const { certificate, key } = await newLaunchKey()
  const objects = new Map<string, Stored>()
  const changes: Change[] = []
  const watchers = new Set<(change: Change) => void>()
  /**
   * What the test has it do: fail, refuse watches, know no LeaderWorkerSet, refuse pods with these words, forbid paths, or forget
   * changes until this version.
   */
  const state = {
    fails: false,
    watches: true,
    hasSets: true,
    quota: null as string | null,
    forbidden: null as RegExp | null,
    forgotten: 0,
  }
  let version = 100

  function change(type: Change['type'], object: Stored, collection: string): void {
    object.metadata.resourceVersion = String(++version)
    const copy = structuredClone(object)
    const made = { type, object: copy, collection, version }
    changes.push(made)
    for (const watcher of watchers) watcher(made)
  }

  function put(collection: string, kind: string, given: object): Stored {
    const object = structuredClone(given) as Stored
    object.kind = kind
    // Never the same as that of another cluster of the tests: processes of pods are found by it, and ended.
    const uid = object.metadata.uid ?? randomUUID()
    object.metadata = { ...object.metadata, uid, creationTimestamp: new Date().toISOString() }
    objects.set(`${collection}/${object.metadata.name}`, object)
    change('ADDED', object, collection)
    return object
  }

  function remove(path: string, collection: string): void {
    const object = objects.get(path)!
    objects.delete(path)
    change('DELETED', object, collection)
    // An owner takes along what it owns.
    for (const other of ownedBy(object)) erase(other, collectionOf(other), 30)
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const owner = [...objects].find(([, { metadata }]) => metadata.uid === uid && metadata.finalizers)
      if (owner && ownedBy(owner[1]).length === 0) end(owner[0])
    }
  }

  const collectionOf = (path: string) => path.slice(0, path.lastIndexOf('/'))
  const ownedBy = ({ metadata: { uid } }: Stored) =>
    [...objects].flatMap(([path, { metadata }]) =>
      metadata.ownerReferences?.some(owner => owner.uid === uid) ? [path] : [],
    )

  /** Deletes an object whose owned objects are gone, unless a node still runs it. */
  function end(path: string): void {
    const object = objects.get(path)!
    delete object.metadata.finalizers
    if (object.spec?.nodeName === undefined || object.metadata.deletionGracePeriodSeconds === 0)
      remove(path, collectionOf(path))
  }

  /** Deletes an object after all that it owns, which is deleted at once. */
  function eraseForeground(path: string): void {
    const object = objects.get(path)!
    const owned = ownedBy(object)
    if (owned.length === 0) return erase(path, collectionOf(path), 30)
    object.metadata.finalizers = ['foregroundDeletion']
    object.metadata.deletionTimestamp ??= new Date().toISOString()
    if (object.kind === 'Pod') object.metadata.deletionGracePeriodSeconds ??= 30
    change('MODIFIED', object, collectionOf(path))
    for (const other of owned) eraseForeground(other)
  }

  /** Deletes an object: pods that have a node get so many seconds. */
  function erase(path: string, collection: string, seconds: number): void {
    const object = objects.get(path)!
    const isBound = collection.endsWith('/pods') && object.spec?.nodeName !== undefined
    const isHeld = object.metadata.finalizers !== undefined
    if (isHeld && seconds === 0) object.metadata.deletionGracePeriodSeconds = 0
    else if (!isBound || seconds === 0) remove(path, collection)
    else if (seconds < (object.metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY)) {
      object.metadata.deletionGracePeriodSeconds = seconds
      object.metadata.deletionTimestamp = new Date(Date.now() + seconds * 1_000).toISOString()
      change('MODIFIED', object, collection)
    }
  }

  const server = createServer({ cert: certificate, key }, (request, response) => {
    void answer(request, response).catch((thrown: unknown) => {
      if (thrown instanceof Refusal) return send(response, thrown.status, thrown)
      response.destroy(thrown as Error)
    })
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'https://api')
    const method = request.method!
    const body = (await bodyOf(request)) as Stored & {
      gracePeriodSeconds?: number
      preconditions?: { uid?: string }
      propagationPolicy?: string
      target?: { name: string }
    }
    if (state.fails) return void response.destroy()
    authorize(request.headers.authorization, method, url)
    if (url.pathname === '/version') return send(response, 200, { gitVersion: 'v1.99.0' })
    if (url.pathname.endsWith('/selfsubjectaccessreviews')) return review(body, response)
    const [, namespace, resource = '', name, subresource] =
      /^\/(?:api\/v1|apis\/(?:leaderworkerset\.x-k8s\.io|batch)\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(
        url.pathname,
      ) ?? []
    if (url.pathname.startsWith('/apis/leader')) {
      if (!state.hasSets)
        return void response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n')
      if (resource === '')
        return send(response, 200, { kind: 'APIResourceList', resources: [{ name: 'leaderworkersets' }] })
    }
    const owners = { leaderworkersets: 'LeaderWorkerSet', jobs: 'Job', services: 'Service' }
    const kind = { pods: 'Pod', secrets: 'Secret', nodes: 'Node', events: 'Event', ...owners }[resource]
    if (!kind) throw new Refusal(404, 'NotFound', 'the server could not find the requested resource')
    const collection = `${namespace ?? ''}/${resource}`
    const path = `${collection}/${name}`
    if (name === undefined && method === 'POST') {
      if (objects.has(`${collection}/${body.metadata.name}`))
        throw new Refusal(409, 'AlreadyExists', `${resource} "${body.metadata.name}" already exists`)
      if (resource === 'pods' && state.quota !== null) throw new Refusal(403, 'Forbidden', state.quota)
      if (resource === 'jobs' && !/"image":"./.test(JSON.stringify(body.spec)))
        throw new Refusal(422, 'Invalid', 'spec.template.spec.containers[0].image: Required value')
      if (url.searchParams.get('dryRun') === 'All') return send(response, 201, body)
      if (resource === 'pods') body.status = { phase: 'Pending' }
      return send(response, 201, put(collection, kind, body))
    }
    if (name === undefined && url.searchParams.get('watch') === '1')
      return watch(url.searchParams, collection, response)
    if (name === undefined) return list(url.searchParams, collection, response)
    const object = objects.get(path)
    if (!object) throw new Refusal(404, 'NotFound', `${resource} "${name}" not found`)
    if (subresource === 'log') return log(object, url.search, response)
    if (subresource === 'binding') {
      const { nodeName } = object.spec!
      if (nodeName !== undefined) throw new Refusal(409, 'Conflict', `pod ${name} is already assigned to ${nodeName}`)
      object.spec!.nodeName = body.target!.name
    }
    if (method === 'PATCH') {
      if (body.metadata?.uid !== undefined && body.metadata.uid !== object.metadata.uid)
        throw new Refusal(409, 'Conflict', 'the UID in the precondition does not match')
      merge(object, body)
    }
    if (method === 'DELETE') {
      const wanted = body?.preconditions?.uid
      if (wanted !== undefined && wanted !== object.metadata.uid)
        throw new Refusal(409, 'Conflict', 'the UID in the precondition does not match')
      if (body?.propagationPolicy === 'Foreground') eraseForeground(path)
      else erase(path, collection, body?.gracePeriodSeconds ?? 30)
    } else if (method !== 'GET') change('MODIFIED', object, collection)
    send(response, 200, object)
  }

  /** Throws for a token that nobody has, and for what the role does not allow. */
  function authorize(authorization: string | undefined, method: string, url: URL): void {
    const token = authorization?.replace('Bearer ', '')
    if (!Object.values<unknown>(tokens).includes(token)) throw new Refusal(401, 'Unauthorized', 'Unauthorized')
    if (state.forbidden?.test(`${method} ${url.pathname}`)) throw new Refusal(403, 'Forbidden', 'it is forbidden')
    const action = actionOf(method, url)
    if (action?.resource === 'selfsubjectaccessreviews') return
    if (token === tokens.infer && action && !role.admit(action))
      throw new Refusal(403, 'Forbidden', `it cannot ${action.verb} the resource "${action.resource}"`)
  }

  /** Whether the role allows it. */
  function review({ spec }: Pick<Stored, 'spec'>, response: ServerResponse): void {
    const { group, resource, subresource, verb, namespace } = spec!.resourceAttributes as Record<string, string>
    const named = subresource === undefined ? resource! : `${resource}/${subresource}`
    const allowed = role.allows({ group: group!, resource: named, verb: verb!, namespace: namespace ?? null })
    send(response, 201, { status: { allowed } })
  }

  function list(query: URLSearchParams, collection: string, response: ServerResponse): void {
    const all = [...objects].filter(
      ([path, one]) => isIn(path.slice(0, path.lastIndexOf('/')), collection) && matches(one, query),
    )
    const begin = Number(query.get('continue') ?? 0)
    // It answers from its cache then, which has no pages.
    const isWhole = query.get('resourceVersion') === '0' || query.get('limit') === null
    const end = isWhole ? all.length : begin + Number(query.get('limit'))
    const metadata = { resourceVersion: String(version), ...(end < all.length && { continue: String(end) }) }
    const text = JSON.stringify({ kind: 'List', metadata, items: all.slice(begin, end).map(([, one]) => one) })
    // As the API server does it: short answers are not compressed.
    const isLong = text.length > 128 << 10
    const isCompressed = isLong && /gzip/.test(response.req.headers['accept-encoding'] ?? '')
    response.writeHead(200, {
      'content-type': 'application/json',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
    })
    response.end(isCompressed ? gzipSync(text, { level: 1 }) : text)
  }

  function watch(query: URLSearchParams, collection: string, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? 0)
    if (!state.watches) throw new Refusal(503, 'ServiceUnavailable', 'too many watches')
    if (from < state.forgotten) throw new Refusal(410, 'Expired', `too old resource version: ${from}`)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const tell = (one: Change) => {
      if (one.version > from && isIn(one.collection, collection) && matches(one.object, query))
        response.write(`${JSON.stringify({ type: one.type, object: one.object })}\n`)
    }
    for (const one of changes) tell(one)
    watchers.add(tell)
    response.on('close', () => watchers.delete(tell))
  }

  /** As the API server does it: the kubelet of the node is asked. */
  function log(pod: Stored, search: string, response: ServerResponse): void {
    const node = objects.get(`/nodes/${pod.spec?.nodeName}`)
    const port = (node?.status as { daemonEndpoints?: { kubeletEndpoint: { Port: number } } } | undefined)
      ?.daemonEndpoints
    if (!port) throw new Refusal(400, 'BadRequest', 'the pod is not scheduled')
    const path = `/containerLogs/${pod.metadata.namespace}/${pod.metadata.name}/engine${search}`
    const to = { host: '127.0.0.1', port: port.kubeletEndpoint.Port, path, rejectUnauthorized: false }
    const passed = askSecurely(to, (found: IncomingMessage) => {
      response.writeHead(found.statusCode!)
      response.flushHeaders()
      found.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    passed.end()
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const breakConnections = () => server.closeAllConnections()
  return {
    state,
    objects,
    put,
    /** As another program does it: the node has gone with what ran there. */
    removePod: (namespace: string, name: string) => remove(`${namespace}/pods/${name}`, `${namespace}/pods`),
    /** Changes an object, and announces it. */
    change(path: string, patch: object): void {
      merge(objects.get(path)!, patch)
      change('MODIFIED', objects.get(path)!, path.slice(0, path.lastIndexOf('/')))
    },
    version: () => version,
    breakConnections,
    fail(fails: boolean): void {
      state.fails = fails
      if (fails) breakConnections()
    },
    url: `https://127.0.0.1:${port}`,
    certificate,
    async close(): Promise<void> {
      breakConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

class Refusal extends Error {
  readonly status: number
  readonly reason: string
  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

function send(response: ServerResponse, code: number, body: object): void {
  const shown = body instanceof Refusal ? { kind: 'Status', code, reason: body.reason, message: body.message } : body
  response.writeHead(code, { 'content-type': 'application/json' })
  response.end(JSON.stringify(shown))
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text === '' ? undefined : JSON.parse(text)
}

/** Whether objects of a collection are in another, which may be that of all namespaces. */
const isIn = (one: string, other: string): boolean =>
  one === other || (other.startsWith('/') && one.slice(one.indexOf('/')) === other)

function matches(object: Stored, query: URLSearchParams): boolean {
  const words = (name: string) => (query.get(name) ?? '').split(',').filter(Boolean)
  const fields: Record<string, unknown> = {
    'metadata.name': object.metadata.name,
    'spec.nodeName': object.spec?.nodeName,
    'status.phase': object.status?.phase,
    'involvedObject.uid': object.involvedObject?.uid,
    'involvedObject.name': object.involvedObject?.name,
    type: object.type,
  }
  return (
    words('labelSelector').every(one => object.metadata.labels?.[one.split('=')[0]!] === one.split('=')[1]) &&
    words('fieldSelector').every(one => {
      const [name, value] = one.split(/!?=/)
      return (String(fields[name!]) === value) !== one.includes('!=')
    })
  )
}

function merge(target: Record<string, unknown>, patch: object): void {
  for (const [name, value] of Object.entries(patch))
    if (typeof value === 'object' && value !== null && !Array.isArray(value) && typeof target[name] === 'object')
      merge(target[name] as Record<string, unknown>, value as object)
    else target[name] = value
}
