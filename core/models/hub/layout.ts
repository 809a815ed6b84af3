import { posix } from 'node:path'
import { invalidValue } from '../../failure.ts'

/**
 * Returns the paths in the cache that all tools of the hub share. `blobs` has the contents by their hash, `snapshots` has
 * one folder per commit with links to the blobs, `refs` has the commit of each branch. Pure.
 * Source: the cache page of huggingface_hub.
 */
export function layoutOf(cache: string, repository: string) {
  const folder = `models--${repository.replaceAll('/', '--')}`
  const root = posix.join(cache, folder)
  return {
    root,
    blobs: posix.join(root, 'blobs'),
    blob: (hash: string) => posix.join(root, 'blobs', hash),
    incomplete: (hash: string) => posix.join(root, 'blobs', `${hash}.incomplete`),
    /** The lock that the tools of the hub take while they write a blob. */
    lock: (hash: string) => posix.join(cache, '.locks', folder, `${hash}.lock`),
    snapshot: (commit: string) => posix.join(root, 'snapshots', commit),
    file: (commit: string, path: string) => posix.join(root, 'snapshots', commit, path),
    /** Relative target of the link from a file of a snapshot to its blob. */
    link: (path: string, hash: string) => posix.join('../'.repeat(path.split('/').length + 1), 'blobs', hash),
    ref: (revision: string) => posix.join(root, 'refs', revision),
  }
}
export type HubLayout = ReturnType<typeof layoutOf>

/** The repository, `owner/name`, of its folder in a cache, the `root` of its layout. Pure. */
export const repositoryIn = (folder: string): string =>
  posix
    .basename(folder)
    .replace(/^models--/, '')
    .replaceAll('--', '/')

/**
 * Returns the path of a file from the hub, checked to stay inside the folder to which it is joined.
 * Throws Failure `invalid_value` for a path that leads outside or that file systems do not allow.
 */
export function insidePath(path: string, repository: string): string {
  const parts = path.split('/')
  const bad =
    path === '' ||
    path.length > 1024 ||
    /[\\\p{Cc}]/u.test(path) ||
    parts.some(part => part === '' || part === '.' || part === '..' || Buffer.byteLength(part) > 255)
  if (bad)
    throw invalidValue(
      `The repository ${repository} has a file called ${JSON.stringify(path)}, which could be written outside its folder. Nothing was downloaded.`,
    )
  return path
}
