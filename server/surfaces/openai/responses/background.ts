import { chatBodyOf } from '../../../../core/dialects/chat-forms.ts'
import { type Continued, continuedLength } from '../../../../core/dialects/responses/continuation.ts'
import type { RememberedResponse } from '../../../../core/dialects/responses/response-object.ts'
import { ResponseRequest } from '../../../../core/dialects/responses/response-schemas.ts'
import { Failure, invalid } from '../../../../core/failure.ts'
import { parseBoundedJson } from '../../../../core/json.ts'
import type { StoredResponse } from '../../../../core/responses/responses.ts'
import { conversationTask } from '../../../../core/schemas/task.ts'
import { openChangeFlag } from '../../../http/answer/follow.ts'
import { openEventStream } from '../../../http/answer/sse.ts'
import type { ClientExchange } from '../../../http/request/exchange.ts'
import type { Owners } from '../../../http/request/owners.ts'
import { hasEnded } from '../../../views/job-record.ts'
import { submitText, type TextJobOwners } from '../../../work/submitters.ts'

export type BackgroundOwners = TextJobOwners & Owners<'responses'>

/** Whether the body may ask for a response in the background. A large one is searched, because parsing it takes long. */
function asksForBackground(body: Buffer) {
  for (let at = body.indexOf(member); at >= 0; at = body.indexOf(member, at + member.length))
    if (/^\s*:\s*true/.test(body.toString('latin1', at + member.length, at + member.length + 32))) return true
  return false
}
const member = '"background"'

/** The job and the response that it makes have the same ULID. */
const responseIdOf = (jobId: string) => `resp_${jobId.slice('job_'.length)}`

/**
 * Submits the request as a durable job if it asks for a response in the background. Resolves with the stored response;
 * undefined if it does not ask for one.
 */
export async function submitBackground(
  exchange: ClientExchange,
  body: Buffer,
  continued: Continued,
  owners: BackgroundOwners,
): Promise<{ stored: StoredResponse; streams: boolean } | undefined> {
  if (!asksForBackground(body)) return undefined
  const { config, responses } = owners
  if (body.length > config.limits.json_body)
    throw new Failure(
      'payload_too_large',
      `A response in the background may have a request of at most ${Math.floor(config.limits.json_body / 1024)} KiB. Send images as files, or leave 'background' out.`,
    )
  if (continuedLength(continued) > config.limits.json_body)
    throw invalid(
      'previous_response_id',
      `A response in the background may continue a conversation of at most ${Math.floor(config.limits.json_body / 1024)} KiB. Send what matters of it as 'input', or leave 'background' out.`,
      'payload_too_large',
    )
  const raw = parseBoundedJson(body, config.limits)
  const { data: request } = ResponseRequest.safeParse(raw)
  if (request?.background !== true) return undefined
  const { body: chat } = chatBodyOf('responses', raw, { id: '', ...continued })
  const { stream: _, stream_options: __, ...inputs } = chat
  const { organizationId, token } = exchange.caller
  const job = await submitText(
    exchange,
    {
      task: conversationTask,
      text: JSON.stringify(inputs),
      terms: { retentionMs: responses.retentionMs },
      body: raw,
    },
    owners,
  )
  const id = responseIdOf(job.id)
  const kept = await responses.find(organizationId, id)
  if (!kept) {
    const { request: remembered } = chatBodyOf('responses', raw, { id, ...continued })
    const made = { organizationId, tokenId: token.id, createdAt: job.createdAt, answer: null, jobId: job.id }
    await responses.keep(remembered as RememberedResponse, made)
  }
  return { stored: (await responses.find(organizationId, id))!, streams: request.stream === true }
}

/** Milliseconds between two looks at a job that reports no change. */
const lookMs = 60_000
/** Events that a response begins with, before anything was generated. */
const eventOf = (text: string) => {
  const [event, data] = text.split('\n') as [string, string]
  const json = data.slice('data: '.length)
  return {
    event: event.slice('event: '.length),
    data: json,
    sequence: (JSON.parse(json) as { sequence_number: number }).sequence_number,
  }
}

/**
 * Streams a response in the background: its first events at once, the others when its job has ended. They are made of the
 * result, so they are the same each time, also after a restart. `after`: the number of the last event that the reader has.
 * A stream that cannot go on ends with an `error` event. Rejects with its Failure.
 */
export async function streamBackground(
  exchange: ClientExchange,
  { record, job: first }: StoredResponse,
  after: number,
  owners: Owners<'jobs' | 'responses'>,
): Promise<void> {
  const { jobs, responses } = owners
  const { organizationId } = record
  let sent = after
  // With the number of the last event that was sent: a reader that continues after it misses none.
  const errorRecord = ({ code, message, param }: Failure) => {
    const error = { type: 'error', sequence_number: Math.max(0, sent), code, message, param: param ?? null }
    return { event: 'error', data: JSON.stringify(error) }
  }
  const stream = await openEventStream(exchange, { lastRecord: errorRecord })
  const send = (texts: string) => {
    for (const text of texts.split('\n\n')) {
      if (!text) continue
      const { event, data, sequence } = eventOf(text)
      if (sequence <= sent) continue
      sent = sequence
      stream.send({ event, data })
    }
  }
  const changes = openChangeFlag(stream)
  const stop = jobs.follow(first!.id, changes.set)
  try {
    send(responses.firstEvents(record))
    while (!stream.ended) {
      const job = await jobs.find(organizationId, first!.id)
      if (!job) throw new Failure('not_found', `The response '${record.id}' was deleted while it was streamed.`)
      if (hasEnded(job)) {
        send(await responses.eventsOf(record, job))
        break
      }
      await changes.wait(lookMs)
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    stream.send(errorRecord(failure))
    throw failure
  } finally {
    stop()
    stream.end()
  }
}
