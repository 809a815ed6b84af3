import { Failure, type FailureCode } from '../failure.ts'
import { ulid } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { BatchLine, BatchRecord, JobRecord, LineError, Store } from '../store/store.ts'
import { type BatchEndpoints, targetOf } from './batch-line.ts'
import type { InputFiles, InputLine } from './batch-work.ts'

const sentences = {
  batch_expired: 'This request could not be executed before the completion window expired.',
  batch_cancelled: 'This request was not executed because the batch was cancelled.',
} as const

interface OutputOptions {
  batch: BatchRecord
  endpoints: Pick<BatchEndpoints, 'answer'>
  /** Path of the input file, and its longest line in bytes. */
  path: string
  maxBytes: number
  store: Pick<Store, 'batches'>
  jobs: Pick<Jobs, 'find'>
  files: Pick<InputFiles, 'page'>
}

/** Ends of the ids of a line: those of its job if it has one. */
const idOf = (line: BatchLine | undefined): string => line?.jobId?.slice('job_'.length) ?? ulid()

/** The error of a line whose request was answered with a failure. */
function answered(id: string, customId: string, { code, message, param }: LineError): string {
  const failure = new Failure(code as FailureCode, message)
  const request_id = `req_${id}`
  const error = { code, message, type: failure.type, param: param ?? null, request_id }
  const response = { status_code: failure.status, request_id, body: { error } }
  return `${JSON.stringify({ id: `batch_req_${id}`, custom_id: customId, response, error: null })}\n`
}

/** The error of a line that was not executed. */
const unexecuted = (id: string, customId: string, code: string, message: string): string =>
  `${JSON.stringify({ id: `batch_req_${id}`, custom_id: customId, response: null, error: { code, message } })}\n`

/** Yields the lines of the output files of a batch whose jobs have all ended. */
export function openOutputLines({ batch, endpoints, path, maxBytes, store, jobs, files }: OutputOptions) {
  const target = targetOf(batch)

  /** Yields every line with what became of it, in the order of the file. */
  async function* all(): AsyncGenerator<{ input: InputLine; line: BatchLine | undefined }> {
    let [offset, line] = [0, 1]
    for (;;) {
      const page = await files.page({ path, target, offset, line, lines: 200, maxBytes })
      const last = page.at(-1)
      if (!last) return
      const rows = new Map((await store.batches.lines(batch, page[0]!.line, last.line)).map(row => [row.line, row]))
      for (const input of page) yield { input, line: rows.get(input.line) }
      ;[offset, line] = [last.end, last.line + 1]
    }
  }

  async function* success(job: JobRecord, input: InputLine, id: string): AsyncGenerator<string | Uint8Array> {
    const head = JSON.stringify({ id: `batch_req_${id}`, custom_id: input.customId }).slice(0, -1)
    const request = () => JSON.parse(input.body) as Record<string, unknown>
    const pieces = endpoints.answer(batch.endpoint, { job, request, origin: batch.origin })[Symbol.asyncIterator]()
    // Fails before its first piece if the result is no longer kept.
    let piece = await pieces.next()
    yield `${head},"response":{"status_code":200,"request_id":"req_${id}","body":`
    for (; !piece.done; piece = await pieces.next()) yield piece.value
    yield '},"error":null}\n'
  }

  function failed(line: BatchLine | undefined, job: JobRecord | undefined, input: InputLine): string {
    const id = idOf(line)
    const error = line?.error ?? job?.error ?? (line ? null : batch.restError)
    if (error && job?.status !== 'cancelled') return answered(id, input.customId, error)
    if (batch.ending === 'completed' && job?.status === 'cancelled')
      return unexecuted(id, input.customId, 'cancelled', `The job ${job.id} of this request was cancelled.`)
    const code = batch.ending === 'expired' ? 'batch_expired' : 'batch_cancelled'
    return unexecuted(id, input.customId, code, sentences[code])
  }

  return {
    /** The answers of the lines that have completed. */
    async *outputs(): AsyncGenerator<string | Uint8Array> {
      for await (const { input, line } of all()) {
        if (line?.status !== 'completed') continue
        const job = await jobs.find(batch.organizationId, line.jobId!)
        let begun = false
        try {
          if (!job) throw new Failure('output_expired', 'The result of this request is no longer kept.')
          for await (const piece of success(job, input, idOf(line))) {
            begun = true
            yield piece
          }
        } catch (thrown) {
          const failure = Failure.from(thrown)
          // A result that cannot be shown is the error of its line, and keeps no other line from the file.
          if (begun || failure.retryable) throw thrown
          yield answered(idOf(line), input.customId, failure)
        }
      }
    },
    /** The errors of all other lines. */
    async *errors(): AsyncGenerator<string> {
      for await (const { input, line } of all()) {
        if (line?.status === 'completed') continue
        const job = line?.jobId ? await jobs.find(batch.organizationId, line.jobId) : undefined
        yield failed(line, job, input)
      }
    },
  }
}
