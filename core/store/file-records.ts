import type { Task } from '../schemas/task.ts'

export const filePurposes = ['upload', 'input', 'output', 'thumbnail'] as const
export type FilePurpose = (typeof filePurposes)[number]

export interface NewFile {
  id: string
  organizationId: string
  purpose: FilePurpose
  /** As a reader would save it. */
  name: string
  contentType: string
  bytes: number
  /** Hex. */
  sha256: string
  width: number | null
  height: number | null
  durationMs: number | null
  /** The job that made it or was given it. */
  jobId: string | null
  createdAt: number
  /** Null: kept until it is removed. */
  expiresAt: number | null
}
export interface FileRecord extends NewFile {
  /** When it was removed or ran out; its bytes may be gone since. */
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
  /** Words that the prompt holds, in any case. */
  search?: string
  modelId?: string
  createdAfter?: number
  createdBefore?: number
}
