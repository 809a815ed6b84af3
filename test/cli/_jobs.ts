import type { IncomingMessage, ServerResponse } from 'node:http'
import { answer, fakeServer, type Seen } from './_server.ts'

export const jobId = 'job_01K2ZZZZZZ7QK2M9XDAAAAAAAA'
export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC',
  'base64',
)

export const pictures = {
  model_id: 'demo/picture',
  tasks: ['slug/text-to-image', 'slug/inpainting'],
  status: 'warm',
  enabled: true,
  slug: 'draw',
  slugs: { 'slug/text-to-image': 'draw/text-to-image', 'slug/inpainting': 'draw/inpainting' },
}
const videos = {
  model_id: 'demo/clip',
  tasks: ['slug/text-to-video'],
  status: 'cold',
  enabled: true,
  slug: 'clip/fast',
  slugs: { 'slug/text-to-video': 'clip/fast' },
}
const talker = {
  model_id: 'tiny-chat',
  tasks: ['std/chat-completion'],
  status: 'warm',
  enabled: true,
  slugs: {},
}

/** A job record as the API returns it. */
export const record = (more: object = {}) => ({
  id: jobId,
  object: 'job',
  queue_id: jobId.replace('job_', 'q_'),
  organization_id: 'org_x',
  kind: 'async',
  task: 'slug/text-to-image',
  model_id: 'demo/picture',
  status: 'pending',
  priority: 0,
  queue_position: null,
  progress: null,
  eta_seconds: null,
  waiting_for: null,
  inputs: {},
  result: null,
  error: null,
  attempts: 0,
  max_attempts: 3,
  created_at: 1_790_000_000,
  started_at: null,
  finished_at: null,
  metadata: null,
  ...more,
})

export const done = (url: string, more: object = {}, files = 1) =>
  record({
    status: 'completed',
    progress: 1,
    metrics: { queue_ms: 12_000, reference_queue_ms: 15_000, run_ms: 2_500 },
    result: {
      images: Array.from({ length: files }, (_, at) => ({
        url: `${url}/files/file-${at}/image.png?exp=1&sig=x`,
        file_name: 'image.png',
        content_type: 'image/png',
        file_size: png.length,
        width: 1,
        height: 1,
      })),
      width: 1,
      height: 1,
      seed_used: 42,
      prompt: 'A Cat, sitting!',
    },
    ...more,
  })

export const failed = (message: string) =>
  record({
    status: 'failed',
    error: { code: 'worker_error', message, type: 'server_error', retryable: true, attempt: 3 },
  })

/** One event of a job, as a stream contains it. */
export const event = (type: string, data: object): string =>
  `id: evt_1\nevent: ${type}\ndata: ${JSON.stringify({ id: 'evt_1', type, timestamp: '2026-11-21T12:00:00Z', created_at: 1, data })}\n\n`

/** The state of the job when the stream opens. */
export const snapshot = (job: object): string => event('snapshot', { job })

export type Answerer = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void

export interface Script {
  models?: object[]
  /** The n-th answer to each request; the last answer is repeated after that. */
  submit?: Answerer[]
  events?: Answerer[]
  job?: Answerer[]
  cancel?: Answerer[]
  files?: Answerer[]
  list?: Answerer[]
  other?: Answerer
}

export const says =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answerer =>
  response =>
    answer(response, status, body, headers)

export const refuses = (
  status: number,
  code: string,
  message = 'No.',
  headers: Record<string, string> = {},
): Answerer => says({ error: { code, message, type: 'x', param: null } }, status, headers)

/** Breaks the connection. */
export const breaks: Answerer = response => void response.destroy()
/** Sends nothing and keeps the connection open. */
export const silent: Answerer = () => undefined
/** A stream of these records that then ends or is kept open. */
export const streams =
  (records: readonly string[], { hold = false, cut = false } = {}): Answerer =>
  response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const one of records) response.write(one)
    if (cut) setImmediate(() => response.destroy())
    else if (!hold) response.end()
  }

export const file: Answerer = response =>
  void response.writeHead(200, { 'content-type': 'image/png', 'content-length': String(png.length) }).end(png)

/** A server that answers the job routes from a script and records the requests. */
export async function jobServer(script: Script) {
  const counts: Record<string, number> = {}
  const next = (name: string, answers: readonly Answerer[] | undefined): Answerer => {
    const at = counts[name] ?? 0
    counts[name] = at + 1
    return answers?.[Math.min(at, answers.length - 1)] ?? refuses(404, 'unknown_url', `Nothing answers ${name} here.`)
  }
  const server = await fakeServer((seen, response, request) => {
    const { method, path } = seen
    const play = (name: string, answers: readonly Answerer[] | undefined) =>
      next(name, answers)(response, seen, request)
    if (path === '/api/model-status')
      return answer(response, 200, { models: script.models ?? [pictures, videos, talker] })
    if (method === 'POST' && (path === '/api/jobs' || path.startsWith('/slug/')))
      return play('submit', script.submit ?? [says({ id: jobId, queue_id: null, status: 'pending' }, 202)])
    if (path.endsWith('/events')) return play('events', script.events)
    if (path.endsWith('/cancel')) return play('cancel', script.cancel)
    if (path.startsWith('/files/')) return play('files', script.files ?? [file])
    if (path.startsWith('/api/jobs?')) return play('list', script.list)
    if (method === 'GET' && /^\/api\/jobs\/[^/]+$/.test(path)) return play('job', script.job)
    ;(script.other ?? refuses(404, 'unknown_url'))(response, seen, request)
  })
  const env = { INFER_URL: server.url, INFER_TOKEN: 'sk-test' }
  const asked = (part: string) => server.seen.filter(({ method, path }) => `${method} ${path}`.includes(part))
  return { ...server, env, asked }
}
