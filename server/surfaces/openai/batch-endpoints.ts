import { type BatchEndpoint, type BatchEndpoints, type LineResult, slugIn } from '../../../core/batches/batch-line.ts'
import { chatBodyOf, formedAnswer } from '../../../core/dialects/chat-forms.ts'
import { nothingContinued } from '../../../core/dialects/responses/continuation.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { conversationTask, type Task } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { isInBase64 } from '../../../core/tasks/image/image-request.ts'
import { type ImageResult, linkedImages } from '../../../core/tasks/image/image-result.ts'
import { filesOf, hasFiles, shownResult, taskRecords } from '../../../core/tasks/registry.ts'
import type { PartReader } from '../../http/answer/send-pieces.ts'
import { readResult } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'

type Pieces = AsyncIterable<string | Uint8Array>
type AnswerOwners = Owners<'files'>

/** How the lines of one path become jobs, and their results answers. */
interface EndpointRow {
  path: string
  task: Task
  /** Returns the body of the task's own endpoint. Absent where the body is that already. */
  inputs?: BatchEndpoint['inputs']
  /** Yields the answer as JSON. Absent where it is the result as jobs show it. */
  answer?: (result: LineResult, owners: AnswerOwners) => Pieces
}

/** Every endpoint of lines but the slugs: the routes of the tasks, and those of other dialects. */
const rows: readonly EndpointRow[] = [
  ...taskRecords.flatMap(({ id, path, family }) =>
    path === undefined
      ? []
      : [{ path: path.slice('/std'.length), task: id, ...(family === 'image' ? { answer: images } : {}) }],
  ),
  { path: '/v1/responses', task: conversationTask, inputs: chatOfResponse, answer: response },
]
const byPath = new Map(rows.map(row => [row.path, row]))

/** The paths of all endpoints but the slugs. */
export const batchPaths: readonly string[] = rows.map(({ path }) => path)

const expired = ({ id }: JobRecord) => new Failure('output_expired', `The result of job ${id} is no longer kept.`)

/** Returns the stored result if it and its files are still kept. */
async function keptResult(job: JobRecord, { files }: AnswerOwners) {
  if (job.result === null) throw expired(job)
  const result = JSON.parse(await readResult(job.result)) as unknown
  for (const id of filesOf(job.task, result)) if (!(await files.find(job.organizationId, id))) throw expired(job)
  return result
}

/** Yields the result as the task's own endpoint answers it; files as addresses. */
async function* shown({ job, origin }: LineResult, owners: AnswerOwners): AsyncGenerator<string | Uint8Array> {
  const { result, task } = job
  if (result === null) throw expired(job)
  if (hasFiles(task)) {
    const kept = await keptResult(job, owners)
    return yield JSON.stringify(shownResult(task, kept, file => owners.files.link(file, origin)))
  }
  if (typeof result === 'string') return yield result
  await using whole = await result.open()
  yield* piecesOf(whole, 256 << 10)
}

/** Yields a file in pieces of this many bytes; only the last one is shorter. */
async function* piecesOf(file: PartReader, bytes: number) {
  for (let position = 0; ; ) {
    const buffer = Buffer.allocUnsafe(bytes)
    let filled = 0
    for (let read = -1; read !== 0 && filled < bytes; filled += read)
      read = (await file.read({ buffer: buffer.subarray(filled), position: position + filled })).bytesRead
    if (filled === 0) return
    position += filled
    yield buffer.subarray(0, filled)
  }
}

/** What the form of a response needs of a line: nothing that is stored. */
const formOfLine = (body: Record<string, unknown>, id: string) =>
  chatBodyOf('responses', { ...body, store: false }, { id, ...nothingContinued })

/** Turns the body of a response into that of a chat completion. Throws Failure for what needs a stored response. */
function chatOfResponse(body: Record<string, unknown>) {
  for (const param of ['previous_response_id', 'background'])
    if (body[param] != null && body[param] !== false)
      throw invalid(
        param,
        `'${param}' cannot be used in a batch, whose responses are not stored. Send the whole conversation as 'input'.`,
        'unsupported_parameter',
      )
  return formOfLine(body, '').body
}

/** Yields the response that is made of the completion. */
async function* response({ job, request }: LineResult): AsyncGenerator<string | Uint8Array> {
  if (job.result === null) throw expired(job)
  const { request: remembered } = formOfLine(request(), `resp_${job.id.slice('job_'.length)}`)
  const facts = { createdAt: job.createdAt, queuedMs: 0 }
  yield formedAnswer({ name: 'responses', request: remembered }, await readResult(job.result), facts)
}

/** Base64 turns three bytes into four characters, so only a multiple of three can be encoded on its own. */
const encodedBytes = 3 * (64 << 10)

/** Yields images as addresses, or in base64 if the request asks for that: a piece of a file at a time. */
async function* images(line: LineResult, owners: AnswerOwners): AsyncGenerator<string | Uint8Array> {
  if (!isInBase64(line.request())) return yield* shown(line, owners)
  const { job, origin } = line
  const { files } = owners
  const result = (await keptResult(job, owners)) as ImageResult
  const { data, ...facts } = linkedImages(result, file => files.link(file, origin))
  yield `${JSON.stringify(facts).slice(0, -1)},"data":[`
  for (const [at, { file_id }] of result.images.entries()) {
    const record = await files.find(job.organizationId, file_id)
    const handle = record && (await files.open(record))
    if (!handle) throw expired(job)
    await using file = handle
    const { url: _address, ...more } = data[at]!
    const members = JSON.stringify(more).slice(1)
    yield `${at > 0 ? ',' : ''}{"b64_json":"`
    for await (const piece of piecesOf(file, encodedBytes)) yield piece.toString('base64')
    yield members === '}' ? '"}' : `",${members}`
  }
  yield ']}'
}

/** Returns the endpoints that lines of batches may have. */
export const openBatchEndpoints = ({ registry, files }: Owners<'registry' | 'files'>): BatchEndpoints => ({
  find(path) {
    const slug = slugIn(path)
    if (slug === undefined) {
      const row = byPath.get(path)
      return row && { path, task: row.task, slug: null, ...(row.inputs ? { inputs: row.inputs } : {}) }
    }
    const found = registry.bySlug(slug)
    return found && { path, task: found.task, modelId: found.name, slug }
  },
  answer: (path, result) => (byPath.get(path)?.answer ?? shown)(result, { files }),
})
