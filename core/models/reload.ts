import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Plans } from '../accounts/plans.ts'
import { Failure, invalidValue } from '../failure.ts'
import type { Log } from '../log.ts'
import type { CachesSettings } from './caches-settings.ts'
import { anyChange, type ModelChanges } from './change.ts'
import { type Config, parseConfig } from './config.ts'
import type { ModelCheck } from './engine-traits.ts'
import type { Fleet } from './fleet.ts'
import type { Peers } from './peers/settings.ts'
import type { Pools } from './pools.ts'
import type { Registry } from './registry.ts'

/** How often the file is checked, milliseconds. */
const intervalMs = 200

/**
 * Calls `changed` when a file has changed, `settleMs` milliseconds after its last change, so that a file that is written
 * in pieces is not read too early. It watches the path and not the file behind it, because editors and atomic writes
 * replace the file, and Kubernetes replaces a link in its path.
 *
 * It polls five times a second and does not use inotify, for three reasons. infer.yaml is in the folder of the database,
 * whose every write would wake the event loop (17 µs each; with 3,000 a second, 5 % of a processor was measured). Network
 * file systems and files mounted into containers send no events. The number of inotify watches of a user is limited.
 */
function watchPath({ path, settleMs, changed }: { path: string; settleMs: number; changed: () => void }): {
  close(): void
} {
  let timer: NodeJS.Timeout | undefined
  const onChange = () => {
    clearTimeout(timer)
    timer = setTimeout(changed, settleMs)
  }
  watchFile(path, { interval: intervalMs, persistent: false }, onChange)
  return {
    close() {
      clearTimeout(timer)
      unwatchFile(path, onChange)
    },
  }
}

/** How the active configuration relates to the file. */
export interface ConfigurationStatus {
  path: string
  /** When the active configuration was read, epoch milliseconds. */
  readAt: number
  /** What is wrong in the current file, as a sentence with its position; null when the file is active. */
  fault: string | null
  /** Changed settings that take effect at the next start, such as `limits.drain_timeout`. */
  pending: readonly string[]
  /** How many changes of the file were applied, and how many were refused. */
  applied: number
  refused: number
}

/**
 * Applies changes of `models`, `pools`, `peers`, `plans`, `caches` and `gpu` in infer.yaml to the running server. A file that cannot be read or
 * is invalid changes nothing; the error is logged once, with its position. Other settings are read only at the start.
 */
export function openReload(options: {
  path: string
  /** The configuration of the start. */
  config: Config
  check: ModelCheck
  registry: Pick<Registry, 'replace'>
  plans?: Pick<Plans, 'replace'>
  caches?: { configure(settings: CachesSettings): void }
  fleet: Pick<Fleet, 'reconfigured'>
  /** Called with a valid configuration before the fleet is told. */
  applied?: (config: Config) => void
  log: Log
  settleMs?: number
}) {
  const { path, config, check, registry, plans, caches, fleet, applied, log, settleMs = 100 } = options
  const atStart = settingsOf(config)
  let { gpu, pools, peers } = config
  let cachesNow = config.caches
  // Starts without content, so that the first reload finds a change since the start.
  let last: Read = { error: 'ENOENT' }
  let status: ConfigurationStatus = { path, readAt: Date.now(), fault: null, pending: [], applied: 0, refused: 0 }
  /** Whether the file ever existed. If not, a missing file is not an error. */
  let existed = false
  let closed = false
  const watcher = watchPath({ path, settleMs, changed: () => void reload() })

  /**
   * Reads and applies the file. An unchanged file is applied again only with `force`. Resolves when the fleet has been
   * notified; never rejects.
   */
  async function reload(force = false): Promise<void> {
    const read = readNow(path)
    if (closed || (isDeepStrictEqual(read, last) && !force)) return
    const before = last
    last = read
    existed ||= !('error' in read && read.error === 'ENOENT')
    try {
      const next = parseConfig(existed ? textOf(read, before) : '', path, check)
      const changes = registry.replace(next.models, next.toys)
      const changedPlans = plans?.replace(next.plans) ?? []
      const hasNewCaches = !isDeepStrictEqual(next.caches, cachesNow)
      if (hasNewCaches) caches?.configure((cachesNow = next.caches))
      const pending = namesOf(atStart, settingsOf(next))
      const newlyPending = pending.filter(name => !status.pending.includes(name))
      if (newlyPending.length > 0)
        log.warn('Changed settings take effect at the next start', { settings: newlyPending.join(', ') })
      const changedQuiet = !isDeepStrictEqual(next.gpu, gpu)
      const changedPools = changedNames(pools, next.pools)
      const changedPeers = changedNames(peers, next.peers)
      ;({ gpu, pools, peers } = next)
      applied?.(next)
      const isApplied =
        force ||
        anyChange(changes) ||
        changedPlans.length > 0 ||
        changedPools.length > 0 ||
        changedPeers.length > 0 ||
        changedQuiet ||
        hasNewCaches ||
        status.fault !== null
      status = { ...status, readAt: Date.now(), fault: null, pending, applied: status.applied + (isApplied ? 1 : 0) }
      if (isApplied)
        log.info('The configuration was read again', {
          path,
          ...fieldsOf({ ...changes, plans: changedPlans, pools: changedPools, peers: changedPeers }),
        })
      await fleet.reconfigured()
    } catch (thrown) {
      const { message, cause } = Failure.from(thrown)
      status = { ...status, fault: message, refused: status.refused + 1 }
      log.error(
        `The changed configuration is invalid, so the server keeps the previous one: ${message}`,
        {},
        thrown instanceof Failure ? undefined : (cause ?? thrown),
      )
    }
  }

  if ('text' in readNow(path)) void reload()
  return {
    reload: () => reload(true),
    status: (): ConfigurationStatus => status,
    close(): void {
      closed = true
      watcher.close()
    },
  }
}
export type Reload = ReturnType<typeof openReload>

/** The text of the file, or the error code of reading it. */
type Read = { text: string } | { error: string }

function readNow(path: string): Read {
  try {
    return { text: readFileSync(path, 'utf8') }
  } catch (cause) {
    return { error: (cause as NodeJS.ErrnoException).code ?? String(cause) }
  }
}

/** A file that becomes empty or missing is more likely an accident than the intention to remove all models. */
function textOf(read: Read, before: Read): string {
  const wrong = (what: string) =>
    invalidValue(`${what} To offer only the models that ship with infer, write: models: []`)
  if ('error' in read)
    throw wrong(
      read.error === 'ENOENT' ? 'The file does not exist any more.' : `The file cannot be read (${read.error}).`,
    )
  if (read.text.trim() === '' && 'text' in before) throw wrong('The file is empty.')
  return read.text
}

/** Returns every setting that is read only at the start, by its key. */
function settingsOf({ limits, ...others }: Config): Map<string, unknown> {
  const rest = Object.entries(others).filter(
    ([name]) => !['models', 'toys', 'plans', 'gpu', 'caches', 'pools', 'peers'].includes(name),
  )
  const inLimits = Object.entries(limits).map(([name, value]) => [`limits.${name}`, value] as const)
  return new Map<string, unknown>([...rest, ...inLimits])
}

const namesOf = (before: Map<string, unknown>, after: Map<string, unknown>): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    name => !isDeepStrictEqual(before.get(name), after.get(name)),
  )

/** The pools or peers that were added, removed or changed. */
const changedNames = (before: Pools | Peers, after: Pools | Peers): string[] =>
  namesOf(new Map(Object.entries(before)), new Map(Object.entries(after)))

const fieldsOf = (changes: ModelChanges & Record<'plans' | 'pools' | 'peers', string[]>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(changes).flatMap(([kind, ids]: [string, string[]]) =>
      ids.length > 0 ? [[kind, ids.join(', ')]] : [],
    ),
  )
