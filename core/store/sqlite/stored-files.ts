import { openAsIs } from './database.ts'

/** Returns the files in a backup that were not removed, so that their bytes can be copied beside it. */
export function storedFilesIn(path: string): { id: string; organizationId: string; contentType: string }[] {
  const copy = openAsIs(path, { readonly: true })
  try {
    return copy
      .query<{ id: string; organizationId: string; contentType: string }>(
        'SELECT id, organization_id AS organizationId, content_type AS contentType FROM files WHERE removed_at IS NULL',
      )
      .all()
  } finally {
    copy.close()
  }
}
