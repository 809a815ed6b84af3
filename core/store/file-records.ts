import type { Task } from '../schemas/task.ts'
import type { StorageLimits } from './limits.ts'

export const filePurposes = ['upload', 'input', 'output', 'thumbnail'] as const
export type FilePurpose = (typeof filePurposes)[number]

/** The purposes that a caller of the files API may give a file. */
export const uploadPurposes = [
  'assistants',
  'batch',
  'fine-tune',
  'vision',
  'user_data',
  'evals',
  'audio',
  'image',
  'video',
] as const
/** The purposes of the files API. Only the server gives a file the last one: the results of a batch. */
export const apiPurposes = [...uploadPurposes, 'batch_output'] as const
export type ApiPurpose = (typeof apiPurposes)[number]

export interface NewFile {
  id: string
  organizationId: string
  purpose: FilePurpose
  /** Its purpose in the files API; null: that API does not have it. */
  apiPurpose: ApiPurpose | null
  /** The file name for a download. */
  name: string
  contentType: string
  bytes: number
  /** Hex. */
  sha256: string
  width: number | null
  height: number | null
  durationMs: number | null
  /** The job that created it or received it. */
  jobId: string | null
  createdAt: number
  /** Null: kept until it is removed. */
  expiresAt: number | null
}
export interface FileRecord extends NewFile {
  /** When it was removed or expired; its bytes may have been erased since. */
  removedAt: number | null
}

/** A page of the files that the files API has. */
export interface ApiFilePage {
  limit: number
  order: 'asc' | 'desc'
  /** Id of the last file of the page before. */
  after?: string | undefined
  purpose?: ApiPurpose | undefined
  /** Files that have expired at this time are left out. */
  now: number
}

export const libraryKinds = ['image', 'video', 'audio'] as const
type LibraryKind = (typeof libraryKinds)[number]

export interface NewLibraryItem {
  /** The id of its image, video or audio file. */
  id: string
  organizationId: string
  jobId: string
  task: Task
  modelId: string
  prompt: string
  /** Null if the engine has none. */
  seed: number | null
  /** Null unless it is a video. */
  fps: number | null
  numFrames: number | null
  thumbnailId: string | null
  createdAt: number
}
export interface LibraryItem extends NewLibraryItem {
  file: FileRecord
}

export interface LibraryFilter {
  limit: number
  after?: string
  /** Words of the prompt, in any case. */
  search?: string
  modelId?: string
  /** Only images, videos or audio. */
  kind?: LibraryKind
  /** Files of jobs of the tokens of this user. */
  userId?: string
  createdAfter?: number
  createdBefore?: number
}

export interface FileStore {
  /** With `limits`, throws Failure `storage_full` or `rate_limit` (uploads of the day) if one forbids the file. */
  add(file: NewFile, limits?: StorageLimits): Promise<FileRecord>
  /** Throws what `add` would throw for such a file. */
  requireRoom(organizationId: string, file: { bytes: number; isUpload: boolean }, limits: StorageLimits): Promise<void>
  /** By id alone: for signed URLs, whose signature grants the right to read. Includes removed files. */
  find(id: string): Promise<FileRecord | undefined>
  /** Newest first, without removed files. */
  list(organizationId: string, page: { limit: number; after?: string; purpose?: FilePurpose }): Promise<FileRecord[]>
  /** The files of the files API, without removed and expired ones. */
  listOfApi(organizationId: string, page: ApiFilePage): Promise<FileRecord[]>
  /**
   * Removes a file unless unfinished work needs it: then throws Failure `conflict`, which names the work. Undefined: the
   * organization has no such file, or it was removed.
   */
  delete(organizationId: string, id: string, at: number): Promise<FileRecord | undefined>
  /** Idempotent. Undefined: the organization has no such file. */
  remove(organizationId: string, id: string, at: number): Promise<FileRecord | undefined>
  /** Removes expired files, and returns the files whose bytes can be erased: at most `limit`. */
  expire(now: number, limit: number): Promise<FileRecord[]>
  /** Marks these files' bytes as erased. The rows stay, so that an old URL can be distinguished from a wrong one. */
  erased(ids: readonly string[]): Promise<void>
}

/** The videos of an organization, added when their job ends. */
export interface LibraryStore {
  list(organizationId: string, filter: LibraryFilter): Promise<{ items: LibraryItem[]; next: string | null }>
  find(organizationId: string, id: string): Promise<LibraryItem | undefined>
  /** Removes the entry and its files. Undefined: the organization has no such entry. */
  remove(organizationId: string, id: string, at: number): Promise<LibraryItem | undefined>
}
