import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { jobIdOf, queueIdOf } from '../../../core/ids.ts'
import type { MediaInput } from '../../../core/media/media.ts'
import { imageRules } from '../../../core/media/media-input.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  nullish,
  oneOf,
  optional,
  optionalString,
  optionalStringUpTo,
  string,
} from '../../../core/schemas/fields.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { deletedAnswer, deletedObject, listPage, pageLimit } from '../../http/answer/page.ts'
import { readJson } from '../../http/body/body.ts'
import { formValues, isForm, readForm } from '../../http/body/multipart.ts'
import { errorGroups, found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { outputOf } from '../../views/generation-request.ts'
import { hasEnded } from '../../views/job-record.ts'
import { seconds } from '../../views/view-of.ts'
import { type SubmitOwners, submitGeneration } from '../../work/submit-generation.ts'

const fields = {
  model: z.string().min(1).max(256).describe('Id of a model that creates videos.'),
  prompt: z.string().min(1).max(10_000).describe('What to create.'),
  seconds: nullish(
    z.union([z.string().regex(/^\d{1,3}(\.\d{1,3})?$/, 'must be a number of seconds.'), z.number().min(0.01).max(300)]),
    'Length in seconds. Default: 4.',
  ),
  size: nullish(
    z.string().regex(/^\d{2,4}x\d{2,4}$/, 'must be a size such as 1280x720.'),
    'Width and height in pixels, such as `1280x720`. Default: that of the model.',
  ),
}
const VideoCreate = namedObject('VideoCreate', 'A video to create.', {
  ...fields,
  input_reference: nullish(
    z.union([
      z.string(),
      z.object({
        image_url: optionalString('An http(s) or `data:` URL.'),
        file_id: optionalString('Id of a file.'),
      }),
    ]),
    'The image that the video begins with: a URL, the id of a file, or an object with one of them.',
  ),
})
const VideoCreateForm = namedObject('VideoCreateForm', 'A video to create, as a form.', {
  ...fields,
  input_reference: optional(z.file(), 'The image that the video begins with.'),
})

const VideoObject = namedObject('Video', "A video job in OpenAI's form.", {
  id: string('Id of the video: `video_…`.'),
  object: z.literal('video'),
  model: string('Id of the model.'),
  status: oneOf('State of the video.', ['queued', 'in_progress', 'completed', 'failed']),
  progress: integer('Per cent.'),
  created_at: integer('Unix seconds.'),
  completed_at: nullableInteger('Unix seconds; null before.'),
  expires_at: nullableInteger('Unix seconds after which it is removed; null if it is kept.'),
  prompt: nullableString('The prompt.'),
  size: string('Width and height in pixels; empty if they follow from the image.'),
  seconds: string('Length in seconds.'),
  remixed_from_video_id: z.null().describe('Always null.'),
  error: nullable(
    z.object({ code: string('Error code.'), message: string('What happened.') }),
    'Why it failed; null if it did not.',
  ),
})
const VideoPage = namedObject('VideoPage', 'A page of videos.', {
  object: z.literal('list'),
  data: array('The videos, newest first.', VideoObject),
  first_id: nullableString('Id of the first one; null without any.'),
  last_id: nullableString('Id of the last one; null without any.'),
  has_more: boolean('Whether there are more.'),
})
const VideoDeleted = deletedObject('VideoDeleted', 'A video that was deleted.', ['video.deleted', 'video'], {})

const route = routeOf({ tag: 'Images' })

type VideoOwners = SubmitOwners & Owners<'cpu'>

const prefix = 'video_'
const idOf = (job: JobRecord) => prefix + queueIdOf(job.id).slice(2)
const statuses = {
  pending: 'queued',
  processing: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'failed',
} as const
const tasks = ['slug/text-to-video', 'slug/image-to-video'] as const
const isVideo = ({ task }: JobRecord) => (tasks as readonly string[]).includes(task)

interface Inputs {
  prompt?: string
  width?: number
  height?: number
  num_frames?: number
  fps?: number
}

function view(job: JobRecord, { jobs }: Owners<'jobs'>): z.input<typeof VideoObject> {
  const { prompt, width, height, num_frames: frames, fps } = JSON.parse(job.inputs) as Inputs
  const progress = job.status === 'completed' ? 1 : hasEnded(job) ? 0 : (jobs.progressOf(job).progress ?? 0)
  const error = job.status === 'cancelled' ? { code: 'cancelled', message: 'The video was cancelled.' } : job.error
  return {
    id: idOf(job),
    object: 'video',
    model: job.modelId,
    status: statuses[job.status],
    progress: Math.floor(progress * 100),
    created_at: seconds(job.createdAt),
    completed_at: job.status === 'completed' ? seconds(job.finishedAt) : null,
    expires_at: seconds(job.expiresAt),
    prompt: prompt ?? null,
    size: width && height ? `${width}x${height}` : '',
    seconds: frames && fps ? String(Math.round((frames / fps) * 1000) / 1000) : '',
    remixed_from_video_id: null,
    error: statuses[job.status] === 'failed' && error ? { code: error.code, message: error.message } : null,
  }
}

async function find(id: string, { caller }: ClientExchange, { jobs }: Owners<'jobs'>) {
  const requestId = `q_${id.slice(prefix.length)}`
  const job = id.startsWith(prefix) ? await jobs.find(caller.organizationId, jobIdOf(requestId)) : undefined
  return found(job?.kind === 'async' && isVideo(job) && job, 'Video', id)
}

/** Reads JSON or a form, which OpenAI's client sends also without a file. Throws Failure for an invalid request. */
async function create(exchange: ClientExchange, owners: VideoOwners) {
  if (!isForm(exchange.req)) return submit(exchange, await readJson(exchange, owners), owners)
  await using form = await readForm(exchange, { files: { input_reference: 1 }, maxBytes: imageRules.maxBytes }, owners)
  const body = formValues(form.fields, VideoCreate.shape)
  const [file] = form.files.get('input_reference') ?? []
  if (file) {
    // No client can have sent this name.
    const address = `form:${randomUUID()}`
    exchange.inline = new Map<string, MediaInput>([[address, { path: file.path, bytes: file.bytes }]])
    body.input_reference = address
  }
  await submit(exchange, body, owners)
}

async function submit(exchange: ClientExchange, sent: unknown, owners: VideoOwners) {
  const { model, prompt, seconds: duration, size, input_reference: reference } = parsed(VideoCreate, sent)
  const image = typeof reference === 'object' ? (reference?.image_url ?? reference?.file_id) : reference
  const [width, height] = (size ?? '').split('x').map(Number)
  const body = {
    prompt,
    duration: Number(duration ?? 4),
    ...(width && height ? { width, height } : {}),
    ...(image ? { image_url: image } : {}),
  }
  const target = { modelId: model, task: image ? tasks[1] : tasks[0] }
  const { job } = await submitGeneration(exchange, { target, body }, owners)
  exchange.send(200, JSON.stringify(view(job, owners)))
}

/** Redirects to the signed address of the file, which serves ranges. */
async function content(exchange: ClientExchange, owners: Owners<'files' | 'jobs'>) {
  const job = await find(exchange.params.id ?? '', exchange, owners)
  const variant = exchange.query.get('variant') ?? 'video'
  if (variant !== 'video' && variant !== 'thumbnail')
    throw invalid(
      'variant',
      "'variant' must be video or thumbnail. There are no sprite sheets.",
      'unsupported_parameter',
    )
  if (job.status !== 'completed')
    throw new Failure('conflict', `Video ${idOf(job)} is ${statuses[job.status]}, so it has no content.`)
  const { video } = (await outputOf(job, exchange, owners)) as { video?: { url: string; thumbnail_url?: string } }
  const url = variant === 'thumbnail' ? video?.thumbnail_url : video?.url
  if (url === undefined) throw new Failure('not_found', `Video ${idOf(job)} has no ${variant}.`)
  exchange.head(302, 'text/plain', ['location', url, 'content-length', '0'])
  exchange.res.end()
}

const One = z.object({ id: string('Id of the video: `video_…`.') })
/** The routes of videos in OpenAI's form: an alias of the tasks text to video and image to video. */
export const videoRoutes = (owners: VideoOwners) => [
  route('POST /std/v1/videos', 'user:write', {
    bucket: 'jobs',
    summary: 'Create video',
    description:
      'Creates a video in the background, from a text or from an image and a text. It is a job like those of `/slug`. Poll `GET /std/v1/videos/{id}`.',
    largeBody: true,
    body: VideoCreate,
    form: VideoCreateForm,
    example: { model: 'infer/demo', prompt: 'A cat on a mat', seconds: '1', size: '256x256' },
    response: VideoObject,
    errorCodes: [...errorGroups.submit, ...errorGroups.media],
    answer: exchange => create(exchange, owners),
  }),
  route('GET /std/v1/videos', 'user:read', {
    summary: 'List videos',
    description: 'Returns the videos of the organization that were created from texts or images, newest first.',
    query: z.object({
      limit: pageLimit,
      after: optionalStringUpTo(64, 'Id of the last video of the page before.'),
    }),
    response: VideoPage,
    handle: async ({ query }, exchange) => {
      const page = await videosOf(exchange, query, owners)
      // Lists of jobs have no inputs.
      const jobs = await Promise.all(page.jobs.map(({ organizationId, id }) => owners.jobs.find(organizationId, id)))
      const data = jobs.flatMap(job => (job ? [view(job, owners)] : []))
      return listPage(data, page.more)
    },
  }),
  route('GET /std/v1/videos/:id', 'user:read', {
    summary: 'Get video',
    description: 'Returns the state of a video.',
    errorCodes: ['not_found'],
    params: One,
    response: VideoObject,
    handle: async ({ params }, exchange) => view(await find(params.id, exchange, owners), owners),
  }),
  route('GET /std/v1/videos/:id/content', 'user:read', {
    summary: 'Download video',
    description: 'Redirects to the signed address of the file. `?variant=thumbnail` is its first frame.',
    otherAnswers: { 302: { description: 'The address of the file is in `Location`; no body.' } },
    media: ['video/mp4', 'image/webp'],
    query: z.object({ variant: optionalString('`video` (default) or `thumbnail`.') }),
    errorCodes: ['not_found', 'conflict', 'unsupported_parameter', 'output_expired'],
    params: One,
    answer: exchange => content(exchange, owners),
  }),
  route('DELETE /std/v1/videos/:id', 'user:write', {
    summary: 'Delete video',
    description: 'Removes a video and its files. One that has not ended must be cancelled first.',
    errorCodes: ['not_found', 'conflict'],
    params: One,
    response: VideoDeleted,
    handle: async ({ params }, exchange) => {
      const job = await find(params.id, exchange, owners)
      await owners.jobs.remove(job.organizationId, job.id)
      return deletedAnswer('video.deleted', params.id)
    },
  }),
  route('POST /std/v1/videos/:id/remix', 'user:write', {
    bucket: 'api',
    summary: 'Edit video',
    description: 'Always refused: no engine edits videos by a text. Create another video instead.',
    errorCodes: ['unsupported_parameter'],
    params: One,
    response: VideoObject,
    handle: (): JsonText => {
      throw new Failure(
        'unsupported_parameter',
        'Remixes are not supported here. Create another video with POST /std/v1/videos.',
      )
    },
  }),
]

/** Returns a page of videos of both tasks, newest first. */
async function videosOf(
  exchange: ClientExchange,
  { limit, after }: { limit: number; after?: string | undefined },
  { jobs }: Owners<'jobs'>,
): Promise<{ jobs: JobRecord[]; more: boolean }> {
  const from = after === undefined ? {} : { after: jobIdOf(`q_${after.slice(prefix.length)}`) }
  const pages = await Promise.all(
    tasks.map(task => jobs.list(exchange.caller.organizationId, { limit, kind: 'async', task, ...from })),
  )
  const all = pages.flatMap(page => page.jobs).toSorted((a, b) => (a.id < b.id ? 1 : -1))
  return { jobs: all.slice(0, limit), more: all.length > limit || pages.some(({ next }) => next !== null) }
}
