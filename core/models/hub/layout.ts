import { posix } from 'node:path'
import { Failure } from '../../failure.ts'

/**
 * Where things lie in the cache that the hub's tools share, as pure functions of names: `blobs` holds the contents by
 * their hash, `snapshots` one folder per commit with links to them, `refs` which commit a branch was.
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
    /** The lock that these tools take while they write a blob. */
    lock: (hash: string) => posix.join(cache, '.locks', folder, `${hash}.lock`),
    snapshot: (commit: string) => posix.join(root, 'snapshots', commit),
    file: (commit: string, path: string) => posix.join(root, 'snapshots', commit, path),
    /** What a file of a snapshot links to, seen from where it stands. */
    link: (path: string, hash: string) => posix.join('../'.repeat(path.split('/').length + 1), 'blobs', hash),
    ref: (revision: string) => posix.join(root, 'refs', revision),
  }
}
export type Layout = ReturnType<typeof layoutOf>

/**
 * The name of a file as a hub gives it, once it is known to stay inside the folder that it is joined to.
 * Throws Failure `invalid_value` for one that would not, or that no file system takes.
 */
export function insidePath(path: string, repository: string): string {
  const parts = path.split('/')
  const bad =
    path === '' ||
    path.length > 1024 ||
    /[\\\p{Cc}]/u.test(path) ||
    parts.some(part => part === '' || part === '.' || part === '..' || Buffer.byteLength(part) > 255)
  if (bad)
    throw new Failure(
      'invalid_value',
      `The repository ${repository} has a file called ${JSON.stringify(path)}, which could be written outside of its folder. Nothing was downloaded.`,
    )
  return path
}
