import { jsonOf, objectOf } from '../../json.ts'
import { relayedHeader } from '../relayed-header.ts'
import { type PeerListing, readListing, UnusableListing } from './listed-models.ts'
import type { PeerSettings } from './settings.ts'

/** How long a peer may take to answer, milliseconds. */
const timeoutMs = 5_000
/** A list of thousands of models fits. */
const maxListBytes = 4 << 20

/** The list of a peer, or why there is none: a sentence about the peer with what to do, as far as this server knows it. */
export type PeerAnswer = { listing: PeerListing } | { fault: string }

/**
 * Asks a peer for the models that it lets this server use, without those that it has from others: requests are passed on once
 * only. Never rejects.
 */
export async function askPeer(
  name: string,
  { url, api_key_env: variable }: PeerSettings,
  options: {
    currency: string
    environment: Readonly<Record<string, string | undefined>>
    signal: AbortSignal
  },
): Promise<PeerAnswer> {
  const peer = `The peer '${name}' (${new URL(url).origin})`
  const token = variable === undefined ? undefined : options.environment[variable]
  if (variable !== undefined && !token)
    return {
      fault: `${peer} is not asked, because the variable ${variable} with its token is not set. Set it in the environment of the server, and restart it.`,
    }
  try {
    const { status, text } = await listAt(new URL(url).origin, token, options.signal)
    if (status === 200) return { listing: readListing(text, options.currency) }
    const said = sentenceIn(text)
    const isRefusal = status === 401 || status === 403
    return {
      fault: isRefusal
        ? `${peer} refuses the token of this server: ${said} Make one there with 'infer token create', and put it into ${variable ?? "a variable that 'api_key_env' of the peer names"}.`
        : `${peer} answers ${status}: ${said}`,
    }
  } catch (thrown) {
    if (thrown instanceof UnusableListing) return { fault: `${peer} ${thrown.message}.` }
    return { fault: `${peer} cannot be reached: ${whyUnreachable(thrown)}.` }
  }
}

async function listAt(origin: string, token: string | undefined, signal: AbortSignal) {
  const { Client } = await import('undici')
  // As requests for its models do, it takes no proxy and follows no redirect: the token goes to the peer alone.
  const client = new Client(origin, { connectTimeout: timeoutMs, maxResponseSize: maxListBytes })
  try {
    const answer = await client.request({
      method: 'GET',
      path: '/std/v1/models',
      headers: { accept: 'application/json', [relayedHeader]: '1', ...(token && { authorization: `Bearer ${token}` }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    })
    return { status: answer.statusCode, text: await answer.body.text() }
  } finally {
    void client.destroy().catch(() => {})
  }
}

/** The end of a sentence. */
function whyUnreachable(thrown: unknown): string {
  const { code, message, name } = thrown as NodeJS.ErrnoException
  if (name === 'TimeoutError') return `it has not answered within ${timeoutMs / 1_000} s`
  return typeof code === 'string' && !code.startsWith('UND_') ? code : message.replace(/\.$/, '')
}

/** Characters of a message of a peer that are shown and logged. */
const maxMessage = 500

/** The message of an error of the API, without its full stop; undefined if the text is no such error. */
export function errorMessageIn(text: string): string | undefined {
  const { message } = objectOf(objectOf(jsonOf(text)).error)
  return typeof message === 'string' ? message.slice(0, maxMessage).replace(/\.$/, '') : undefined
}

/** The same as a sentence. */
function sentenceIn(text: string): string {
  const message = errorMessageIn(text)
  if (message === undefined) return 'what it says is no answer of an infer.'
  return /[!?]$/.test(message) ? message : `${message}.`
}
