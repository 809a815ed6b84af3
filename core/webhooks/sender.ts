import type { Agent, Dispatcher } from 'undici'
import { checkedLookup, checkedUrl, type Resolve, resolveAll, UrlRefused, type UrlRules } from '../media/checked-url.ts'
import type { AttemptReply } from './retry.ts'

export interface SenderOptions {
  rules: UrlRules
  /** Milliseconds until the end of the answer. */
  timeoutMs: number
  /** Connections to one host. */
  connections: number
  resolve?: Resolve
  connectMs?: number
}

/** Bytes of an answer that are kept for the owner of the endpoint. */
const keptBytes = 4_096
/** Milliseconds that an idle connection stays open for further messages. */
const idleMs = 4_000

/**
 * Sends messages to the URLs of callers, under the rules of media (core/media/fetch.ts) and without redirects: public
 * addresses only, checked when the connection is made, and a connection never goes to another address than the one that
 * was checked. Names that do not resolve and addresses that are not allowed have the same error.
 */
export function openSender({ rules, timeoutMs, connections, resolve = resolveAll, connectMs = 5_000 }: SenderOptions) {
  let opening: Promise<Agent> | undefined

  const open = async (): Promise<Agent> => {
    const { Agent, buildConnector } = await import('undici')
    const connectors = new Map<number, ReturnType<typeof buildConnector>>()
    const connectorFor = (port: number) => {
      const known = connectors.get(port)
      if (known) return known
      const made = buildConnector({ timeout: connectMs, allowH2: false, lookup: checkedLookup(port, rules, resolve) })
      connectors.set(port, made)
      return made
    }
    return new Agent({
      connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      connect(options, done) {
        const port = Number(options.port || (options.protocol === 'https:' ? 443 : 80))
        connectorFor(port)(options, done)
      },
    })
  }

  async function post(text: string, headers: Record<string, string>, body: string, signal: AbortSignal) {
    const url = checkedUrl(text, undefined, rules)
    const agent = await (opening ??= open())
    const answer = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        'accept-encoding': 'identity',
        'user-agent': 'infer',
      },
      body,
      signal,
    })
    const retryAfter = answer.headers['retry-after']
    return {
      statusCode: answer.statusCode,
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
      body: await beginning(answer.body),
    }
  }

  return {
    /** Sends one message. Never rejects: what went wrong is in the reply. */
    async send(
      { url, headers, body }: { url: string; headers: Record<string, string>; body: string },
      signal: AbortSignal,
    ): Promise<AttemptReply> {
      const began = performance.now()
      const deadline = AbortSignal.timeout(timeoutMs)
      const duration = () => Math.round(performance.now() - began)
      try {
        const reply = await post(url, headers, body, AbortSignal.any([deadline, signal]))
        return { ...reply, durationMs: duration() }
      } catch (thrown) {
        const why = deadline.aborted
          ? `The URL did not answer within ${timeoutMs / 1000} s.`
          : signal.aborted
            ? 'The server stopped.'
            : whyOf(thrown)
        return { statusCode: null, why, durationMs: duration() }
      }
    },
    async close(): Promise<void> {
      await (await opening)?.destroy()
    },
  }
}

/** Reads the beginning of an answer; the rest of a long one is not read. */
async function beginning(body: Dispatcher.ResponseData['body']): Promise<string> {
  const pieces: Uint8Array[] = []
  let size = 0
  // Leaving the loop destroys the body, which then emits an error.
  body.on('error', () => {})
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    pieces.push(piece.subarray(0, keptBytes - size))
    size += piece.byteLength
    if (size >= keptBytes) break
  }
  // A cut character becomes one replacement character.
  return Buffer.concat(pieces).toString('utf8').replaceAll('\0', '')
}

/** Errors of TLS concern the owner of the endpoint; all others look the same, so that nobody can explore our network. */
function whyOf(thrown: unknown): string {
  const { code = '', message } = thrown as NodeJS.ErrnoException
  if (!(thrown instanceof UrlRefused) && /CERT|SSL|TLS|ALTNAME/.test(code))
    return `The URL has no valid certificate (${code}).`
  if (/^UND_ERR_(SOCKET|RES|HTTP)|^HPE_/.test(code) || code === 'ECONNRESET')
    return `The connection ended without an answer (${message || code}).`
  return 'The URL could not be reached. It must be http or https, at a public address, on port 80 or 443.'
}
