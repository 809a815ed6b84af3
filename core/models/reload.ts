import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { anyChange, type ModelChanges } from './change.ts'
import { type Config, parseConfig } from './config.ts'
import type { Fleet } from './fleet.ts'
import type { Model } from './model.ts'
import type { Registry } from './registry.ts'
import { watchPath } from './watch.ts'

/** How the configuration that is in force relates to the file. */
export interface ConfigurationStatus {
  path: string
  /** When what is in force was read, epoch milliseconds. */
  readAt: number
  /** What is wrong in the file as it is now, as a sentence with its place; null when it is in force. */
  fault: string | null
  /** Settings that the file has changed and that take effect at the next start, such as `limits.drain_timeout`. */
  pending: readonly string[]
  /** Changes of the file that were put in force, and those that could not be. */
  applied: number
  refused: number
}

/**
 * Keeps the models of the running server as infer.yaml lists them. A file that cannot be read or is wrong changes
 * nothing; it is logged once, with the place of the fault. Settings other than `models` are read at the start only.
 */
export function openReload({
  path,
  config,
  check,
  registry,
  fleet,
  log,
  settleMs = 100,
}: {
  path: string
  /** As it was read at the start. */
  config: Config
  check: (model: Model) => unknown
  registry: Pick<Registry, 'replace'>
  fleet: Pick<Fleet, 'reconfigured'>
  log: Log
  settleMs?: number
}) {
  const atStart = settingsOf(config)
  // As if there were no file, so that a change since the start is found by the first look.
  let seen: Read = { error: 'ENOENT' }
  let status: ConfigurationStatus = { path, readAt: Date.now(), fault: null, pending: [], applied: 0, refused: 0 }
  /** Whether there ever was a file. Without one, that there is none is no accident. */
  let existed = false
  let closed = false
  const watcher = watchPath({ path, settleMs, changed: () => void reload() })

  /**
   * Reads the file and puts it in force; one that is as it was only if somebody has `asked` for it. Resolves when
   * engines have been told; never rejects.
   */
  async function reload(asked = false): Promise<void> {
    const read = readNow(path)
    if (closed || (isDeepStrictEqual(read, seen) && !asked)) return
    const before = seen
    seen = read
    existed ||= !('error' in read && read.error === 'ENOENT')
    try {
      const next = parseConfig(existed ? textOf(read, before) : '', path, check)
      const changes = registry.replace(next.models, next.toys)
      const pending = namesOf(atStart, settingsOf(next))
      const late = pending.filter(name => !status.pending.includes(name))
      if (late.length > 0)
        log.warn('Settings were changed that take effect at the next start', { settings: late.join(', ') })
      const news = asked || anyChange(changes) || status.fault !== null
      status = { ...status, readAt: Date.now(), fault: null, pending, applied: status.applied + (news ? 1 : 0) }
      if (news) log.info('The configuration was read again', { path, ...wordsOf(changes) })
      await fleet.reconfigured()
    } catch (thrown) {
      const { message, cause } = Failure.from(thrown)
      status = { ...status, fault: message, refused: status.refused + 1 }
      log.error(
        `The configuration was changed and cannot be used, so the server goes on as before: ${message}`,
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

/** The text of the file, or the error of reading it as a word. */
type Read = { text: string } | { error: string }

function readNow(path: string): Read {
  try {
    return { text: readFileSync(path, 'utf8') }
  } catch (cause) {
    return { error: (cause as NodeJS.ErrnoException).code ?? String(cause) }
  }
}

/** What is read out of an empty file, or out of none, is more likely an accident than the wish to offer nothing. */
function textOf(read: Read, before: Read): string {
  const wrong = (what: string) =>
    new Failure('invalid_value', `${what} To offer only what ships with infer, write: models: []`)
  if ('error' in read)
    throw wrong(read.error === 'ENOENT' ? 'The file is gone.' : `The file cannot be read (${read.error}).`)
  if (read.text.trim() === '' && 'text' in before) throw wrong('The file is empty.')
  return read.text
}

/** Everything but what decides which models are offered, each setting under its name. */
function settingsOf({ limits, ...others }: Config): Map<string, unknown> {
  const rest = Object.entries(others).filter(([name]) => name !== 'models' && name !== 'toys')
  const inLimits = Object.entries(limits).map(([name, value]) => [`limits.${name}`, value] as const)
  return new Map<string, unknown>([...rest, ...inLimits])
}

const namesOf = (before: Map<string, unknown>, after: Map<string, unknown>): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    name => !isDeepStrictEqual(before.get(name), after.get(name)),
  )

const wordsOf = (changes: ModelChanges): Record<string, string> =>
  Object.fromEntries(
    Object.entries(changes).flatMap(([what, ids]: [string, string[]]) =>
      ids.length > 0 ? [[what, ids.join(', ')]] : [],
    ),
  )
