/** A path that an engine uses. */
export interface ResolvedPath {
  /** The path as given. */
  path: string
  /** The path with every symbolic link resolved. */
  real: string
  /** True for anything but a folder. */
  file: boolean
}

/** One mount of the file system that an engine sees. Later mounts cover earlier ones. */
export type Mount =
  | { kind: 'bind'; mode: 'read' | 'write' | 'device'; from: string; to: string; file: boolean }
  /** An empty folder in memory. `sealed`: read-only, except for what is bound inside. */
  | { kind: 'empty'; to: string; sealed: boolean }
  | { kind: 'proc'; own: boolean; to: '/proc' }
  /** The devices that every program expects, with a separate /dev/shm. */
  | { kind: 'dev'; to: '/dev' }

export const isInFolder = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(`${folder}/`)

/** The mount that determines the content of this path: the last one at the path or at a parent. */
export const coverOf = (path: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts.findLast(({ to }) => isInFolder(path, to))
