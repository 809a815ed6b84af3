import { coverOf, isInFolder, type Mount, type ResolvedPath } from './mount.ts'
import type { SandboxSystem } from './system.ts'

type Mode = 'read' | 'write' | 'device'
type Hidden = Pick<ResolvedPath, 'real' | 'file'>

export interface ViewFacts {
  /** Whether the engine gets a separate /proc. */
  ownProc: boolean
  system: SandboxSystem
  /** Paths that are always hidden, even below `read` and `write`: the data directory, files with secrets. */
  secret: readonly Hidden[]
  /** Real paths of homes, hidden except for paths in `read` and `write`. */
  homes: readonly string[]
  read: readonly ResolvedPath[]
  write: readonly ResolvedPath[]
}

/** At the same path a higher rank covers a lower one. */
type Step = { rank: 0 | 1 | 2 | 3 | 4 } & ({ mount: Mount } | { hide: string; file: boolean })

/**
 * Returns the mounts of the file system that an engine sees, for `bubblewrap` and `mountScript`. Pure. Paths that are
 * not mounted are absent. Mounts are ordered from the root down, so that a path in a hidden folder can be shown. At the
 * same path, showing a path overrides hiding a home, and hiding a secret overrides both.
 */
export function viewOf(facts: ViewFacts): Mount[] {
  const { system } = facts
  const mounts: Step[] = [
    ...[...system.roots, ...system.configuration, ...system.runtime].map(resolved =>
      bind(0, 'read', resolved, resolved.path),
    ),
    { rank: 0, mount: { kind: 'proc', own: facts.ownProc, to: '/proc' } },
    { rank: 0, mount: { kind: 'dev', to: '/dev' } },
    { rank: 0, mount: { kind: 'empty', to: '/tmp', sealed: false } },
    { rank: 0, mount: { kind: 'empty', to: '/var/tmp', sealed: false } },
    ...system.devices.map(resolved => bind(0, 'device', resolved, resolved.path)),
    // Root could change the machine through these, even without capabilities.
    ...system.controls.map(resolved => bind(0, 'read', resolved, resolved.path)),
    ...facts.read.flatMap(resolved => named(2, 'read', resolved)),
    ...facts.write.flatMap(resolved => named(3, isInFolder(resolved.real, '/dev') ? 'device' : 'write', resolved)),
  ]
  const steps = [
    ...mounts,
    ...facts.homes.flatMap(real => hidden(1, { real, file: false }, mounts)),
    ...facts.secret.flatMap(resolved => hidden(4, resolved, mounts)),
  ]
  const made: Mount[] = []
  for (const step of steps.toSorted((a, b) => depthOf(a) - depthOf(b) || a.rank - b.rank)) {
    const mount = 'hide' in step ? cover(step, made) : step.mount
    if (mount && !isRedundant(mount, made)) made.push(mount)
  }
  return made
}

const depthOf = (step: Step): number => ('hide' in step ? step.hide : step.mount.to).split('/').length

const bind = (rank: 0 | 2 | 3, mode: Mode, { real, file }: ResolvedPath, to: string): Step => ({
  rank,
  mount: { kind: 'bind', mode, from: real, to, file },
})

/** Shows a path both at its real path and at the given one. */
const named = (rank: 2 | 3, mode: Mode, resolved: ResolvedPath): Step[] =>
  [...new Set([resolved.real, resolved.path])].map(to => bind(rank, mode, resolved, to))

/** Hides a path at every mount that contains it: a parent folder may be shown at several paths. */
function hidden(rank: 1 | 4, { real, file }: Hidden, mounts: readonly Step[]): Step[] {
  const found = mounts.flatMap(step => {
    if ('hide' in step || step.mount.kind !== 'bind' || !isInFolder(real, step.mount.from)) return []
    return [step.mount.to + real.slice(step.mount.from.length)]
  })
  return [...new Set(found)].map(path => ({ rank, hide: path, file }))
}

/** Replaces a hidden file. */
const emptyFile = '/dev/null'

/** The mount that hides a path; undefined if nothing is visible there. */
function cover({ hide, file }: { hide: string; file: boolean }, made: readonly Mount[]): Mount | undefined {
  if (coverOf(hide, made)?.kind !== 'bind') return undefined
  return file
    ? { kind: 'bind', mode: 'read', from: emptyFile, to: hide, file }
    : { kind: 'empty', to: hide, sealed: true }
}

/**
 * Whether the path already shows the same file or folder with the required access. A symbolic link in a shown folder
 * needs no mount either: bubblewrap cannot mount over absolute links, and the link's target has a mount of its own.
 */
function isRedundant(mount: Mount, made: readonly Mount[]): boolean {
  if (mount.kind !== 'bind' || mount.mode === 'device' || mount.from === emptyFile) return false
  const there = coverOf(mount.to, made)
  if (there?.kind !== 'bind' || there.from === emptyFile) return false
  const isLink = there.from + mount.to.slice(there.to.length) !== mount.from
  return isLink || mount.mode === 'read' || there.mode === 'write'
}
