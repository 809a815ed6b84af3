import type { Task } from '../schemas/task.ts'

export const filePurposes = ['upload', 'input', 'output', 'thumbnail'] as const
export type FilePurpose = (typeof filePurposes)[number]

export interface NewFile {
  id: string
  organizationId: string
  purpose: FilePurpose
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

export interface NewLibraryItem {
  /** The id of its video file. */
  id: string
  organizationId: string
  jobId: string
  task: Task
  modelId: string
  prompt: string
  seed: number
  fps: number
  numFrames: number
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
  /** Videos of jobs of the tokens of this user. */
  userId?: string
  createdAfter?: number
  createdBefore?: number
}
