/** A path that an engine uses. */
export interface ResolvedPath {
  /** As it is named. */
  path: string
  /** Where it lies, with every link followed. */
  real: string
  /** Anything but a folder. */
  file: boolean
}

/** One step in building the file system that an engine sees. Later steps go over earlier ones. */
export type Mount =
  | { kind: 'bind'; mode: 'read' | 'write' | 'device'; from: string; to: string; file: boolean }
  /** An empty folder in memory. `sealed`: nothing can be written to it but what is bound there. */
  | { kind: 'empty'; to: string; sealed: boolean }
  | { kind: 'proc'; own: boolean; to: '/proc' }
  /** The devices that every program expects, with a /dev/shm of its own. */
  | { kind: 'dev'; to: '/dev' }

export const isWithin = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(`${folder}/`)

/** The mount that decides what is found at this path: the last one at it or above it. */
export const coverOf = (path: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts.findLast(({ to }) => isWithin(path, to))
