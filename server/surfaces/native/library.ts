import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import {
  array,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  optional,
  optionalStringUpTo,
  queryTime,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { type LibraryItem, libraryKinds } from '../../../core/store/store.ts'
import {
  cursorDescription,
  deletedAnswer,
  deletedObject,
  pageEnd,
  pageFields,
  pageLimit,
} from '../../http/answer/page.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { filterOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds, viewOf } from '../../views/view-of.ts'

const route = routeOf({ tag: 'Library' })

const Kind = z.enum(libraryKinds)
const LibraryFile = namedObject('LibraryFile', 'A file of the library.', {
  url: string(
    'Where to read the file. Signed: it needs no token, and works for a day unless the server is set otherwise.',
  ),
  content_type: string('Media type: `video/mp4`.'),
  file_name: string('Name of the file.'),
  file_size: integer('Bytes.'),
})
const LibraryObject = namedObject('LibraryItem', 'An image, a video or audio that a job created.', {
  id: string('Id of the item, and of its file: it can be an input of any request.'),
  object: z.literal('library_item'),
  kind: Kind.describe('What the file is.'),
  file: LibraryFile.describe('The file.'),
  video: nullable(LibraryFile, 'The same as `file` for a video; null otherwise.'),
  thumbnail_url: nullableString('Where to read a small image of it (WebP); null if there is none.'),
  prompt: string('The prompt; of speech the text.'),
  seed: nullableInteger('The seed; null if there was none.'),
  model_id: string('Id of the model.'),
  task: Task,
  job_id: string('Id of the job that created it.'),
  width: nullableInteger('Pixels; null if unknown.'),
  height: nullableInteger('Pixels; null if unknown.'),
  duration_seconds: nullableNumber('Length in seconds; null if unknown.'),
  fps: nullableNumber('Frames per second; null unless it is a video.'),
  num_frames: nullableInteger('Number of frames; null unless it is a video.'),
  created_at: integer('Unix seconds.'),
  expires_at: nullableInteger('Unix seconds after which it is deleted; null if it is kept.'),
})

const Page = namedObject('LibraryPage', 'A page of the library.', {
  items: array('The items, newest first.', LibraryObject),
  ...pageFields,
})
const Deleted = deletedObject(
  'LibraryItemDeleted',
  'Confirms that an item of the library was deleted.',
  ['library_item', 'item'],
  {},
)

function shown(item: LibraryItem, { origin }: ClientExchange, files: Owners['files']) {
  const { file, thumbnailId } = item
  const linked = viewOf(LibraryFile, file, {
    url: files.link(file, origin),
    file_name: file.name,
    file_size: file.bytes,
  })
  const kind = Kind.parse(file.contentType.split('/', 1)[0])
  return viewOf(LibraryObject, item, {
    kind,
    file: linked,
    video: kind === 'video' ? linked : null,
    thumbnail_url: thumbnailId === null ? null : files.link({ id: thumbnailId, name: 'thumbnail.webp' }, origin),
    width: file.width,
    height: file.height,
    duration_seconds: file.durationMs === null ? null : file.durationMs / 1000,
    expires_at: seconds(file.expiresAt),
  })
}

const One = z.object({ id: string('Id of the item.') })
const missing = (id: string) => new Failure('not_found', `There is no file ${id.slice(0, 64)} in the library.`)

/** The routes of the library: images, videos and audio of the organization's jobs, until the job's retention ends or they are deleted. */
export const libraryRoutes = ({ files }: Owners<'files'>) => [
  route('GET /api/library', 'user:read', {
    summary: 'List library items',
    description:
      'Returns images, videos and audio that jobs of the organization created, newest first. Filter them by words of the prompt, kind, model and time.',
    query: z.strictObject({
      q: optionalStringUpTo(500, 'Words that the prompt must contain.'),
      kind: optional(Kind, 'Only images, videos or audio.'),
      model_id: optionalStringUpTo(128, 'Only files of this model.'),
      user_id: optionalStringUpTo(64, 'Only files of the tokens of this user.'),
      created_after: queryTime.describe('Only files created after this time, in Unix seconds.'),
      created_before: queryTime.describe('Only files created before this time, in Unix seconds.'),
      limit: pageLimit,
      after: optional(z.string().max(128).refine(isId, 'This is no cursor of the list.'), cursorDescription),
    }),
    response: Page,
    handle: async ({ query: { q, created_after, created_before, ...query } }, exchange) => {
      const { items, next } = await files.library.list(exchange.caller.organizationId, {
        ...filterOf(query),
        ...(q?.trim() ? { search: q } : {}),
        ...(created_after === undefined ? {} : { createdAfter: created_after * 1000 }),
        ...(created_before === undefined ? {} : { createdBefore: created_before * 1000 }),
      })
      return { items: items.map(item => shown(item, exchange, files)), ...pageEnd(next) }
    },
  }),
  route('GET /api/library/:id', 'user:read', {
    summary: 'Get library item',
    description: 'Returns an image, a video or audio with its prompt and seed, and new addresses of its files.',
    errorCodes: ['not_found'],
    params: One,
    response: LibraryObject,
    handle: async ({ params }, exchange) => {
      const item = isId(params.id) ? await files.library.find(exchange.caller.organizationId, params.id) : undefined
      if (!item) throw missing(params.id)
      return shown(item, exchange, files)
    },
  }),
  route('DELETE /api/library/:id', 'user:write', {
    summary: 'Delete library item',
    description:
      'Deletes an image, a video or audio and its thumbnail. Its address answers 410 afterwards. The job that created it stays.',
    errorCodes: ['not_found'],
    params: One,
    response: Deleted,
    handle: async ({ params }, exchange) => {
      const removed = isId(params.id)
        ? await files.library.remove(exchange.caller.organizationId, params.id)
        : undefined
      if (!removed) throw missing(params.id)
      return deletedAnswer('library_item', removed.id)
    },
  }),
]
