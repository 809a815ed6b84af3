import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { Task } from '../../core/schemas/task.ts'
import type { LibraryItem } from '../../core/store/store.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'

const tag = 'Library'

const LibraryObject = z
  .object({
    id: z.string(),
    object: z.literal('library_item'),
    video: z.object({
      url: z.string(),
      content_type: z.string(),
      file_name: z.string(),
      file_size: z.int(),
    }),
    thumbnail_url: z.string().nullable(),
    prompt: z.string(),
    seed: z.int(),
    model_id: z.string(),
    task: Task,
    job_id: z.string(),
    width: z.int().nullable(),
    height: z.int().nullable(),
    duration_seconds: z.number().nullable(),
    fps: z.number(),
    num_frames: z.int(),
    created_at: z.int(),
    expires_at: z.int().nullable(),
  })
  .meta({ id: 'LibraryItem' })

const Page = z
  .object({ items: z.array(LibraryObject), has_more: z.boolean(), next_cursor: z.string().nullable() })
  .meta({ id: 'LibraryPage' })
const Deleted = z
  .object({ id: z.string(), object: z.literal('library_item'), deleted: z.literal(true) })
  .meta({ id: 'LibraryItemDeleted' })

function shown(item: LibraryItem, call: Call, files: Owners['files']): z.input<typeof LibraryObject> {
  const { file } = item
  const origin = call.origin
  const link = (id: string, name: string) => files.link({ id, name }, origin)
  return {
    id: item.id,
    object: 'library_item',
    video: {
      url: link(file.id, file.name),
      content_type: file.contentType,
      file_name: file.name,
      file_size: file.bytes,
    },
    thumbnail_url: item.thumbnailId === null ? null : link(item.thumbnailId, 'thumbnail.webp'),
    prompt: item.prompt,
    seed: item.seed,
    model_id: item.modelId,
    task: item.task,
    job_id: item.jobId,
    width: file.width,
    height: file.height,
    duration_seconds: file.durationMs === null ? null : file.durationMs / 1000,
    fps: item.fps,
    num_frames: item.numFrames,
    created_at: Math.floor(item.createdAt / 1000),
    expires_at: file.expiresAt === null ? null : Math.floor(file.expiresAt / 1000),
  }
}

const One = z.object({ id: z.string() })
const missing = (id: string) => new Failure('not_found', `There is no video ${id.slice(0, 64)} in the library.`)
const Time = z.coerce.number().int().min(0).max(1e11).optional()

/** Every video that a job of the organization made, until its job's retention ends or it is removed here. */
export const libraryRoutes = ({ files }: Pick<Owners, 'files'>) => [
  route({
    method: 'GET',
    path: '/api/library',
    scope: 'user:read',
    tag,
    summary: 'List and search the videos that were made, newest first',
    description: '`q` are words that the prompt holds; times are Unix seconds.',
    query: z.strictObject({
      q: z.string().max(500).optional(),
      model_id: z.string().max(128).optional(),
      created_after: Time,
      created_before: Time,
      limit: z.coerce.number().int().min(1).max(100).default(20),
      after: z.string().max(128).refine(isId, 'This is no cursor of the list.').optional(),
    }),
    response: Page,
    handle: async ({ query }, call) => {
      const { items, next } = await files.library.list(call.caller.organizationId, {
        limit: query.limit,
        ...(query.after === undefined ? {} : { after: query.after }),
        ...(query.q?.trim() ? { search: query.q } : {}),
        ...(query.model_id === undefined ? {} : { modelId: query.model_id }),
        ...(query.created_after === undefined ? {} : { createdAfter: query.created_after * 1000 }),
        ...(query.created_before === undefined ? {} : { createdBefore: query.created_before * 1000 }),
      })
      return { items: items.map(item => shown(item, call, files)), has_more: next !== null, next_cursor: next }
    },
  }),
  route({
    method: 'GET',
    path: '/api/library/:id',
    scope: 'user:read',
    tag,
    summary: 'Look one video up',
    params: One,
    response: LibraryObject,
    handle: async ({ params }, call) => {
      const item = isId(params.id) ? await files.library.find(call.caller.organizationId, params.id) : undefined
      if (!item) throw missing(params.id)
      return shown(item, call, files)
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/library/:id',
    scope: 'user:write',
    tag,
    summary: 'Remove a video and its files, for good',
    description: 'Its address answers 410 from then on. The job that made it stays.',
    params: One,
    response: Deleted,
    handle: async ({ params }, call) => {
      const removed = isId(params.id) ? await files.library.remove(call.caller.organizationId, params.id) : undefined
      if (!removed) throw missing(params.id)
      return { id: removed.id, object: 'library_item' as const, deleted: true as const }
    },
  }),
]
