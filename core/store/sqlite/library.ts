import type { Statements } from '../method-table.ts'
import type { FileRecord, LibraryItem, NewLibraryItem } from '../store.ts'
import { openInsert, pageOf, recordIf, selected } from './columns.ts'
import type { Connection } from './database.ts'
import { fileFields } from './files.ts'
import { fold, maxSearchWords, searchWords } from './search-words.ts'
import type { WriteContext } from './write-context.ts'

/** How many entries a search scans before it returns a cursor. */
const libraryScan = 1000

interface LibraryRow extends FileRecord, Omit<NewLibraryItem, keyof FileRecord> {
  itemJobId: string
  itemCreatedAt: number
}

/** Columns that were made for videos take these numbers where a file has no such figure. */
const noSeed = -1
const noFigure = 0

const itemOf = (row: LibraryRow): LibraryItem => {
  const { itemJobId, itemCreatedAt, task, modelId, prompt, seed, fps, numFrames, thumbnailId, ...file } = row
  const { id, organizationId } = file
  const item = { id, organizationId, task, modelId, prompt, seed, fps, numFrames, thumbnailId, file }
  return { ...item, jobId: itemJobId, createdAt: itemCreatedAt }
}

/** Writes the rows of the library, inside the caller's transaction. They are removed with their file. */
export function openLibraryRows(connection: Connection) {
  const insert = openInsert(
    connection,
    'library',
    'organizationId, id, jobId, task, modelId, prompt, folded, seed, fps, numFrames, thumbnailId, createdAt',
  )
  return (item: NewLibraryItem): void => {
    const { prompt, seed, fps, numFrames } = item
    const figures = { seed: seed ?? noSeed, fps: fps ?? noFigure, numFrames: numFrames ?? noFigure }
    insert({ ...item, ...figures, folded: fold(prompt) })
  }
}

const columns = `SELECT ${selected(fileFields, 'files')}, library.job_id AS itemJobId,
  library.created_at AS itemCreatedAt, task, model_id AS modelId, prompt, nullif(seed, ${noSeed}) AS seed,
  nullif(fps, ${noFigure}) AS fps, nullif(num_frames, ${noFigure}) AS numFrames, thumbnail_id AS thumbnailId
  FROM library JOIN files USING (id)`

export function libraryCommands(connection: Connection, { files }: WriteContext) {
  const one = connection.query<LibraryRow>`${columns} WHERE library.organization_id = ? AND library.id = ?`
  return {
    'library.remove'(organizationId, id, at) {
      const row = one.get(organizationId, id)
      if (!row) return undefined
      files.remove(organizationId, id, at)
      const item = itemOf(row)
      return { ...item, file: { ...item.file, removedAt: at } }
    },
  } satisfies Statements
}

/** Reads of the library; short statements on a read-only connection. */
export function libraryReads(connection: Connection, scan = libraryScan) {
  const one = connection.query<LibraryRow>`${columns} WHERE library.organization_id = ? AND library.id = ?`
  const floor = connection.scalar<string>`SELECT id FROM library WHERE organization_id = ? AND id < ? ORDER BY id DESC
    LIMIT 1 OFFSET ?`
  const ofUser = `EXISTS (SELECT 1 FROM jobs JOIN tokens ON tokens.id = jobs.token_id WHERE tokens.user_id = ?
    AND jobs.organization_id = library.organization_id AND jobs.id = library.job_id)`
  // One statement for each number of words: SQLite would evaluate an unused condition for every row all the same.
  const pages = Array.from(
    { length: maxSearchWords + 1 },
    (_, words) =>
      connection.query<LibraryRow>`${columns} WHERE library.organization_id = ? AND library.id < ? AND library.id >= ?
      AND (? IS NULL OR model_id = ?) AND (? IS NULL OR substr(content_type, 1, 5) = ?) AND (? IS NULL OR ${ofUser})
      AND library.created_at > ? AND library.created_at < ? ${'AND instr(folded, ?) > 0 '.repeat(words)}
      ORDER BY library.id DESC LIMIT ?`,
  )

  return {
    'library.find': (organizationId, id) => recordIf(one.get(organizationId, id), itemOf),
    'library.list'(organizationId, filter) {
      const { limit, after = '~', search = '', modelId = null, kind = null, userId = null } = filter
      const words = searchWords(search)
      const floorId = floor.get(organizationId, after, scan - 1)
      const { createdAfter = -1, createdBefore = Number.MAX_SAFE_INTEGER } = filter
      const range = [organizationId, after, floorId ?? '', modelId, modelId, kind, kind, userId, userId]
      const rows = pages[words.length]!.all(...range, createdAfter, createdBefore, ...words, limit + 1)
      const { page, next } = pageOf(rows, limit)
      return { items: page.map(itemOf), next: next?.id ?? floorId ?? null }
    },
  } satisfies Statements
}
