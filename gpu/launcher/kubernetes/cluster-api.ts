import { Agent, type Dispatcher } from 'undici'
import { jsonOf } from '../../../core/json.ts'
import type { ClusterAccess } from './cluster-access.ts'
import type { Credentials } from './exec-credentials.ts'

/** The API server has answered, and not done what it was asked. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal'
  readonly status: number
  /** Its word: `AlreadyExists`, `Forbidden`, `Expired`; empty if there is none. */
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }

  /** Whether a repetition cannot help, and nothing was done. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 500 && ![401, 408, 409, 410, 429].includes(this.status)
  }
}

export interface ApiCall {
  method?: 'GET' | 'POST' | 'DELETE' | 'PATCH'
  /** Absolute: `/api/v1/nodes`. */
  path: string
  query?: Readonly<Record<string, string>>
  body?: object
  /** Whether its answer may be compressed, which only `bytes` can return. */
  compressed?: boolean
}

/** The body of an answer. */
export interface AnswerBytes {
  bytes: Buffer
  isCompressed: boolean
}

/** Milliseconds without a byte after which a stream counts as broken: the API server sends a bookmark each minute. */
const silentMs = 150_000
const headersMs = 15_000

/**
 * Calls the API server of a cluster. Requests reject with ApiRefusal, or with another error where nobody knows what they have
 * done. A few calls are all that is needed, so there is no client library.
 */
export function openClusterApi(access: ClusterAccess) {
  let current: { agent: Agent; of: string } | undefined

  /** Connections with these certificates; those with others end after their requests. */
  async function agentFor({ certificate, key }: Credentials): Promise<Agent> {
    const ca = await access.authority()
    const of = JSON.stringify([ca, certificate])
    if (current?.of === of) return current.agent
    void current?.agent.close().catch(() => {})
    const { serverName: servername } = access
    const connect = {
      timeout: 5_000,
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { cert: certificate, key }),
      ...(servername !== undefined && { servername }),
    }
    current = { agent: new Agent({ connect, connections: 64, headersTimeout: headersMs, bodyTimeout: silentMs }), of }
    return current.agent
  }

  async function send(call: ApiCall, signal: AbortSignal, again = true): Promise<Dispatcher.ResponseData> {
    const { method = 'GET', path, query, body } = call
    const credentials = await access.credentials(signal)
    const agent = await agentFor(credentials)
    const url = new URL(access.server)
    const response = await agent.request({
      origin: url.origin,
      path: `${url.pathname.replace(/\/$/, '')}${path}${query ? `?${new URLSearchParams(query).toString()}` : ''}`,
      method,
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': 'infer',
        ...(call.compressed && { 'accept-encoding': 'gzip' }),
        ...(credentials.token !== undefined && { authorization: `Bearer ${credentials.token}` }),
        ...(body && {
          'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (response.statusCode < 300) return response
    const answer = jsonOf(await response.body.text()) as { reason?: unknown; message?: unknown } | undefined
    if (response.statusCode === 401) {
      access.refused()
      if (again) return await send(call, signal, false)
    }
    const words = typeof answer?.message === 'string' ? answer.message : `it has answered ${response.statusCode}`
    throw new ApiRefusal(response.statusCode, typeof answer?.reason === 'string' ? answer.reason : '', words)
  }

  return {
    namespace: access.namespace,
    async request(call: ApiCall, signal: AbortSignal): Promise<unknown> {
      return await (await send(call, signal)).body.json()
    },
    /** The same, and what the clock of the API server was, in epoch milliseconds: that of this machine may differ. */
    async dated(call: ApiCall, signal: AbortSignal): Promise<{ body: unknown; at: number }> {
      const { body, headers } = await send(call, signal)
      return { body: await body.json(), at: Date.parse(String(headers.date)) || Date.now() }
    },
    /** The bytes of an answer as they come; `begun` is called before the first. Leaving the loop ends the request. */
    async *stream(call: ApiCall, signal: AbortSignal, begun?: () => void): AsyncIterable<Uint8Array> {
      const { body } = await send(call, signal)
      begun?.()
      yield* body as AsyncIterable<Uint8Array>
    },
    /** The whole answer as it comes: the API server compresses long ones, by a tenth of their bytes to decrypt here. */
    async bytes(call: ApiCall, signal: AbortSignal): Promise<AnswerBytes> {
      const { body, headers } = await send({ ...call, compressed: true }, signal)
      return { bytes: Buffer.from(await body.arrayBuffer()), isCompressed: headers['content-encoding'] === 'gzip' }
    },
    async close(): Promise<void> {
      await current?.agent.destroy().catch(() => {})
    },
  }
}
export type ClusterApi = ReturnType<typeof openClusterApi>

/** What was created; undefined if it was there before. */
export async function orExisting(create: () => Promise<unknown>): Promise<unknown> {
  try {
    return await create()
  } catch (thrown) {
    if (thrown instanceof ApiRefusal && thrown.reason === 'AlreadyExists') return undefined
    throw thrown
  }
}

/** What was found; undefined if it is not there. */
export async function orAbsent<Found>(find: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await find()
  } catch (thrown) {
    if (thrown instanceof ApiRefusal && thrown.status === 404) return undefined
    throw thrown
  }
}

/** The words of an error of a call, without a final dot. */
export function faultWords(thrown: unknown): string {
  const { message, code } = thrown as { message?: string; code?: string }
  return (message || code || 'it does not answer').replace(/\.$/, '')
}
