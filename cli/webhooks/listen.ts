import { createSecretKey, randomBytes } from 'node:crypto'
import { newId } from '../../core/ids.ts'
import { boundedData, messageText } from '../../core/webhooks/message.ts'
import { activeSecrets, secretText, standardHeaders } from '../../core/webhooks/signature.ts'
import { type Client, dataOf, memberOf } from '../client/client.ts'
import { readText, send } from '../client/http.ts'
import { serverRefusal } from '../client/refusal.ts'
import { refused } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** What is read of an event of the organization. */
interface Event {
  id?: string
  type: string
  timestamp: string
  data: { job_id?: string | null; execution_id?: string | null; node_id?: string | null }
}

/** Bytes of the answer of a local program that are read. */
const maxAnswerBytes = 1 << 16
/** Milliseconds until a local program must answer. */
const answerMs = 15_000

/** What a line shows of a message that was received. */
interface Received {
  timestamp: string
  type: string
  object_id: string
  /** Status of the program that it was forwarded to; null if it was not, or did not answer. */
  status_code: number | null
  error: string | null
}

/**
 * Receives the events of the organization as the messages that webhooks have, prints them, and forwards them to a URL of
 * this machine. It follows the event stream instead of registering an endpoint: so it needs no address that the server
 * could reach, and leaves nothing behind, however it ends. The messages are signed with a secret of this run.
 */
export async function listen(
  client: Client,
  terminal: Terminal,
  options: { forwardTo: string | undefined; types: string[] | undefined; json: boolean; signal: AbortSignal },
): Promise<void> {
  const { forwardTo, types, json, signal } = options
  const key = createSecretKey(randomBytes(32))
  const state = { version: 1, previousUntil: null }
  const secrets = activeSecrets(key, 'listen', state, 0)
  terminal.remark(`Signing secret of this run: ${secretText(key, 'listen', state)}`)
  if (forwardTo === undefined) terminal.remark('Waiting for events. Ctrl-C ends.')
  else terminal.remark(`Forwarding to ${forwardTo}. Ctrl-C ends.`)

  /** The object of the event as a webhook has it. */
  async function textOf({ type, data }: Event): Promise<string> {
    const { job_id: job, execution_id: execution, node_id: node } = data
    if (type.startsWith('job.') && job) {
      const path = `/api/jobs/${job}`
      const whole = await dataOf(client.api.GET('/api/jobs/{id}', { params: { path: { id: job } }, signal }))
      const short = { id: job, object: 'job', status: whole.status, url: client.url + path }
      return boundedData(JSON.stringify(whole), short)
    }
    if (execution && !node) {
      const path = `/api/workflow-executions/${execution}`
      const params = { path: { id: execution }, query: { include: 'none' } } as const
      const whole = await memberOf(client.api.GET('/api/workflow-executions/{id}', { params, signal }), 'execution')
      const short = { id: execution, object: 'workflow_execution', status: whole.status, url: client.url + path }
      return boundedData(JSON.stringify(whole), short)
    }
    return JSON.stringify(execution ? { id: execution, ...data } : data)
  }

  async function forward(id: string, body: string): Promise<Pick<Received, 'status_code' | 'error'>> {
    if (forwardTo === undefined) return { status_code: null, error: null }
    try {
      const headers = { ...standardHeaders(secrets, { id, at: Date.now(), body }), 'user-agent': 'infer' }
      const limit = AbortSignal.any([signal, AbortSignal.timeout(answerMs)])
      const answer = await send({ method: 'POST', url: forwardTo, token: undefined, headers, body, signal: limit })
      await readText(answer, maxAnswerBytes).catch(() => '')
      return { status_code: answer.statusCode ?? null, error: null }
    } catch (thrown) {
      signal.throwIfAborted()
      const { code, message } = thrown as NodeJS.ErrnoException
      return { status_code: null, error: code ?? message }
    }
  }

  async function take(event: Event): Promise<void> {
    const { type, timestamp } = event
    const data = await textOf(event)
    const body = messageText({ id: event.id ?? newId('evt'), type, at: Date.parse(timestamp), data })
    const id = newId('msg')
    const forwarded = await forward(id, body)
    const { node_id, execution_id, job_id } = event.data
    const object_id = (type.startsWith('job.') ? job_id : [execution_id, node_id].filter(Boolean).join(' ')) ?? ''
    const line = { id, event_id: event.id ?? null, type, object_id, timestamp, ...forwarded }
    terminal.print(
      json ? JSON.stringify({ ...line, body: JSON.parse(body) as unknown }) : lineText(line, forwardTo !== undefined),
    )
  }

  const query = types === undefined ? '' : `?types=${encodeURIComponent(types.join(','))}`
  for await (const { event, data } of client.stream(`/api/events${query}`, undefined, signal)) {
    if (event === 'error') throw serverRefusal(client.url, data)
    if (event === 'snapshot') continue
    const parsed = JSON.parse(data) as Event
    // Progress is not sent to webhooks.
    if (!parsed.type.endsWith('.progress')) await take(parsed)
  }
  throw refused('worker_error', `The connection to ${client.url} was lost. Run the command again.`)
}

const lineText = ({ timestamp, type, object_id, status_code, error }: Received, forwarded: boolean): string =>
  [
    timestamp.slice(11, 19),
    type.padEnd(30),
    object_id,
    ...(forwarded ? [`→ ${status_code ?? error ?? 'no answer'}`] : []),
  ].join('  ')
