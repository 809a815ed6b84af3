import type { z } from 'zod'
import type { Continued, KeptResponse } from '../dialects/responses/continuation.ts'
import {
  type RememberedResponse,
  type ResponseState,
  type ResponseStatus,
  responseObject,
} from '../dialects/responses/response-object.ts'
import { responseOfItem } from '../dialects/responses/response-output.ts'
import type { ResponseItem, ResponseObject } from '../dialects/responses/response-schemas.ts'
import { chunkOf, responseError, responseStream } from '../dialects/responses/response-stream.ts'
import { Failure, invalid } from '../failure.ts'
import { isId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { ChatResponse } from '../schemas/chat.ts'
import type { JobRecord, ResponseRecord, Store } from '../store/store.ts'

/** The most responses of one conversation. */
const maxChain = 1_000
/** The most characters of the conversations that one request continues. */
const maxContinued = 16 << 20
/** The most earlier responses of which one request names items. */
const maxReferenced = 64

/** A response that is kept. */
export interface StoredResponse {
  record: ResponseRecord
  /** The response as it is now, as JSON text. */
  text: string
  /** The job that makes it; undefined if it was made at once. */
  job: JobRecord | undefined
}
type Shown = z.input<typeof ResponseObject> & { output: ResponseItem[] }

export interface ResponsesOptions {
  store: Pick<Store, 'responses'>
  jobs: Pick<Jobs, 'find' | 'cancel' | 'remove'>
  /** Milliseconds that a response is kept; 0 keeps it until it is deleted. */
  retentionMs: number
  clock?: { now(): number }
}

/** Stored responses: read, continued and deleted. A response in the background is made of the result of its job. */
export function openResponses({ store, jobs, retentionMs, clock = Date }: ResponsesOptions) {
  async function find(organizationId: string, id: string): Promise<StoredResponse | undefined> {
    if (!isId(id, 'resp_')) return undefined
    const record = await store.responses.find(organizationId, id, clock.now())
    if (!record) return undefined
    if (record.answer !== null) return { record, text: record.answer, job: undefined }
    const job = await jobs.find(organizationId, record.jobId!)
    if (!job) return undefined
    return { record, text: JSON.stringify(await backgroundResponse(record, job)), job }
  }

  /** Cancels a job, unless it has ended, and returns it as it is then. */
  async function stopped(job: JobRecord): Promise<JobRecord> {
    if (job.finishedAt !== null) return job
    try {
      return (await jobs.cancel(job.organizationId, job.id)) ?? job
    } catch (thrown) {
      if (Failure.from(thrown).code !== 'job_already_finished') throw thrown
      return (await jobs.find(job.organizationId, job.id)) ?? job
    }
  }

  /** Returns the responses of the conversation that ends with this one, oldest first; undefined if one is missing. */
  async function conversation(organizationId: string, last: string): Promise<KeptResponse[] | undefined> {
    const parts: KeptResponse[] = []
    let length = 0
    for (let id: string | null = last; id !== null; ) {
      const found = await find(organizationId, id)
      if (!found) return undefined
      length += found.record.input.length + found.text.length
      if (length > maxContinued || parts.length >= maxChain)
        throw invalid(
          'previous_response_id',
          `The conversation of the response '${last}' is too long to be continued. Send what matters of it as 'input'.`,
          'payload_too_large',
        )
      parts.unshift(keptOf(found))
      id = found.record.previousId
    }
    return parts
  }

  return {
    find,
    /**
     * Returns what a request may continue: the conversations of these responses, and the responses that have these items.
     * Absent ones are left out. Throws Failure `payload_too_large`.
     */
    async continued(
      organizationId: string,
      { responseIds, itemIds }: { responseIds: readonly string[]; itemIds: readonly string[] },
    ): Promise<Continued> {
      const earlier: Record<string, KeptResponse[]> = {}
      for (const id of responseIds) {
        const kept = await conversation(organizationId, id)
        if (kept) earlier[id] = kept
      }
      const holders: KeptResponse[] = []
      const holderIds = new Set(itemIds.map(responseOfItem).filter(id => id !== undefined))
      let length = 0
      for (const id of [...holderIds].slice(0, maxReferenced)) {
        const found = await find(organizationId, id)
        if (!found) continue
        holders.push(keptOf(found))
        length += found.record.input.length + found.text.length
        if (length > maxContinued)
          throw invalid(
            'input',
            'The items that are referred to are too long. Send them as they are.',
            'payload_too_large',
          )
      }
      return { earlier, holders }
    },
    /** Keeps a response. With a job, its answer is made of the result of that. */
    keep: (
      { id, input, request }: RememberedResponse,
      made: { organizationId: string; tokenId: string; createdAt: number } & (
        | { answer: string; jobId: null }
        | { answer: null; jobId: string }
      ),
    ): Promise<void> =>
      store.responses.add({
        ...made,
        id,
        previousId: request.previous_response_id ?? null,
        request: JSON.stringify(request),
        input: input!,
        expiresAt: retentionMs === 0 ? null : made.createdAt + retentionMs,
      }),
    retentionMs,
    /** False: the organization has no such response. Its job is cancelled and removed. */
    async remove(organizationId: string, id: string): Promise<boolean> {
      const found = await find(organizationId, id)
      if (!found) return false
      const { job } = found
      if (job) await jobs.remove(organizationId, (await stopped(job)).id)
      return await store.responses.remove(organizationId, id)
    },
    /** Cancels the job of a response, unless it has ended. Returns the response as it is then. */
    async cancel({ record, job }: StoredResponse): Promise<Shown> {
      return (await backgroundResponse(record, await stopped(job!))) as Shown
    },
    /** Returns the events with which a response begins, before anything was generated, as text. */
    firstEvents: (record: ResponseRecord): string =>
      responseStream(rememberedOf(record), { createdAt: record.createdAt }).begin(),
    /** Returns all events of a response whose job has ended, as text, from the first one. */
    async eventsOf(record: ResponseRecord, job: JobRecord): Promise<string> {
      const stream = streamOf(record, job)
      if (job.status === 'completed') return stream.chunk(chunkOf(await completionOf(job))) + stream.end()
      const { code, message } = job.error ?? { code: 'cancelled' as const, message: 'The response was cancelled.' }
      return stream.failure(new Failure(code, message), '')
    },
  }
}
export type Responses = ReturnType<typeof openResponses>

const keptOf = ({ record, text }: StoredResponse): KeptResponse => ({ input: record.input, answer: text })

const rememberedOf = ({ id, request, input }: ResponseRecord): RememberedResponse => ({
  id,
  isStored: true,
  input,
  request: JSON.parse(request) as RememberedResponse['request'],
})

const seconds = (ms: number): number => Math.floor(ms / 1000)

/** The end of the job is the time of the response, so that its events are the same whenever they are made. */
const streamOf = (record: ResponseRecord, { finishedAt }: JobRecord) =>
  responseStream(rememberedOf(record), { createdAt: record.createdAt }, () => seconds(finishedAt ?? 0))

async function completionOf({ result }: JobRecord): Promise<ChatResponse> {
  const text = typeof result === 'string' ? result : await result!.text()
  return JSON.parse(text) as ChatResponse
}

/** Returns the response that a job makes, as it is now. */
async function backgroundResponse(record: ResponseRecord, job: JobRecord): Promise<object> {
  const remembered = rememberedOf(record)
  const shown = (status: ResponseStatus, more: Partial<ResponseState> = {}) =>
    responseObject(remembered, { createdAt: seconds(record.createdAt), output: [], status, ...more })
  switch (job.status) {
    case 'pending':
      return shown('queued')
    case 'processing':
      return shown('in_progress')
    case 'cancelled':
      return shown('cancelled')
    case 'failed':
      return shown('failed', { error: responseError(job.error!) })
    case 'completed': {
      const stream = streamOf(record, job)
      stream.chunk(chunkOf(await completionOf(job)))
      stream.end()
      return stream.ended!
    }
  }
}
