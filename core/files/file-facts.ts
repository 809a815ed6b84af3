import type { ApiPurpose, FilePurpose, NewFile } from '../store/store.ts'
import { safeContentType, safeFileName } from './file-path.ts'
import type { Written } from './write.ts'

/** What the caller knows about a new file; size and hash are measured. */
export interface FileFacts {
  /** Characters that file names must not have are replaced. */
  name: string
  contentType: string
  purpose: FilePurpose
  /** Default: `user_data` for an upload; other files are not in the files API. */
  apiPurpose?: ApiPurpose
  width?: number | null
  height?: number | null
  durationMs?: number | null
  jobId?: string | null
  /** Epoch milliseconds; null: kept until it is removed. */
  expiresAt: number | null
}

/** Returns the row of a file whose bytes were written. An upload is user data unless the caller named a purpose. */
export const newFileOf = (
  id: string,
  organizationId: string,
  facts: FileFacts,
  { bytes, sha256 }: Pick<Written, 'bytes' | 'sha256'>,
): NewFile => ({
  id,
  organizationId,
  purpose: facts.purpose,
  apiPurpose: facts.apiPurpose ?? (facts.purpose === 'upload' ? 'user_data' : null),
  name: safeFileName(facts.name, 'file'),
  contentType: safeContentType(facts.contentType),
  bytes,
  sha256,
  width: facts.width ?? null,
  height: facts.height ?? null,
  durationMs: facts.durationMs ?? null,
  jobId: facts.jobId ?? null,
  createdAt: Date.now(),
  expiresAt: facts.expiresAt,
})
