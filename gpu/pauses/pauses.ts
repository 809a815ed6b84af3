import { createHash } from 'node:crypto'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../core/log.ts'
import type { NewPause, Pause, Pauses } from '../../core/models/pause.ts'
import type { DeviceCapacity } from '../residency/place.ts'
import {
  type DevicePause,
  keptRules,
  nextChange,
  type PauseFacts,
  type PauseRule,
  pausedBy,
  pausedDevices,
  resumedRules,
  ruleState,
} from './rules.ts'
import { openStoredRules } from './stored-rules.ts'

/** Milliseconds between two looks at the processes of the machine, while a pause waits for one. */
const lookMs = 5_000
/** The clock of the machine may be set: rules are looked at again after this at the latest, milliseconds. */
const againMs = 60_000
const mostRules = 100

export interface PauseOptions {
  dataDir: string
  log: Pick<Log, 'info' | 'warn'>
  clock: { epoch: () => number; after: (ms: number, run: () => void) => () => void }
  devices: () => PauseFacts['devices']
  /** The pauses in the configuration. */
  configured?: () => readonly NewPause[]
  /** Returns the ids of the devices that are named by numbers, ids, UUIDs or names. Throws Failure `invalid_value`. */
  idsOf: (names: readonly string[]) => string[]
  /** Returns which of these programs run. Starts a program, where there is a driver to ask. */
  running: (names: readonly string[]) => Promise<ReadonlySet<string>>
  /** Called when other devices are paused than before; `atOnce`: engines there end with their requests. */
  changed: (options: { atOnce: boolean }) => void
}

/**
 * Opens the pauses of the devices. Resolves when it is known which programs run that pauses wait for. The rules are
 * in `rules.ts`; this owns them, stores each change before it holds, and calls `changed` when time passes.
 */
export async function openPauses(options: PauseOptions) {
  const { log, clock, devices, idsOf, changed, configured = () => [] } = options
  const stored = openStoredRules(options)
  let rules: readonly PauseRule[] = withConfigured(stored.read())
  let running: ReadonlySet<string> = new Set()
  let paused: ReadonlyMap<string, DevicePause> = new Map()
  let cancel = () => {}
  let stopLooking = () => {}
  let closed = false

  const facts = (): PauseFacts => ({ now: clock.epoch(), devices: devices(), running })
  const programs = () => [...new Set(rules.flatMap(({ process }) => process ?? []))]

  /** The rules with those of the configuration, which keep what was ended by hand. */
  function withConfigured(before: readonly PauseRule[]): PauseRule[] {
    const own = configured().map((pause): PauseRule => {
      const meant = { ...pause, devices: pause.devices && pause.devices.flatMap(ifKnown) }
      const id = `pause_quiet_${createHash('sha256').update(JSON.stringify(meant)).digest('hex').slice(0, 12)}`
      const known = before.find(one => one.id === id)
      return known ?? { ...meant, id, createdAt: clock.epoch(), isConfigured: true, resumed: {} }
    })
    return [...before.filter(({ isConfigured }) => !isConfigured), ...own]
  }

  /** A card that is not there yet may come later. */
  function ifKnown(name: string): string[] {
    try {
      return idsOf([name])
    } catch {
      return [name]
    }
  }

  /** Finds what is paused now. Returns whether that has changed. */
  function evaluate(): boolean {
    const before = JSON.stringify([...paused])
    const now = facts()
    paused = pausedDevices(rules, now)
    cancel()
    const ms = Math.min(againMs, nextChange(rules, now) - now.now)
    if (rules.length > 0 && !closed) cancel = clock.after(Math.max(0, Math.ceil(ms)), passed)
    return before !== JSON.stringify([...paused])
  }

  function apply(atOnce = false): void {
    const before = [...paused.keys()]
    if (!evaluate() && !atOnce) return
    const after = [...paused.keys()]
    const begun = after.filter(id => !before.includes(id))
    const ended = before.filter(id => !paused.has(id))
    if (begun.length > 0) log.info('Devices are paused', { devices: begun.join(', ') })
    if (ended.length > 0) log.info('Devices are used again', { devices: ended.join(', ') })
    changed({ atOnce })
  }

  /** Time has passed, a program has started or ended, or the devices have changed. */
  function passed(): void {
    const kept = keptRules(rules, facts())
    const isSame = JSON.stringify(kept) === JSON.stringify(rules)
    rules = kept
    if (!isSame)
      void change(() => rules).catch((thrown: unknown) => log.warn('The pauses could not be stored', {}, thrown))
    apply()
  }

  async function look(): Promise<void> {
    running = await options.running(programs())
    passed()
    lookAgain()
  }

  function lookAgain(): void {
    stopLooking()
    if (programs().length > 0 && !closed) stopLooking = clock.after(lookMs, () => void look())
  }

  let changing: Promise<unknown> = Promise.resolve()
  /** Stores what the rules become, then lets it hold. One change after the other. */
  function change(next: () => readonly PauseRule[], atOnce = false): Promise<void> {
    const done = changing.then(async () => {
      const after = keptRules(next(), facts())
      await stored.write(after)
      rules = after
      if (programs().some(name => !running.has(name))) running = await options.running(programs())
      apply(atOnce)
      lookAgain()
    })
    changing = done.catch(() => undefined)
    return done
  }

  function view(rule: PauseRule): Pause {
    const now = facts()
    const { id, devices, until, process, schedule, createdAt, isConfigured } = rule
    const { endsAt, nextAt } = ruleState(rule, now)
    const held = pausedBy(rule, now)
    return {
      id,
      devices,
      until,
      process,
      schedule,
      createdAt,
      isConfigured,
      nextAt,
      pausedDevices: held,
      endsAt: held.length > 0 ? endsAt : null,
    }
  }

  const own: Omit<Pauses, 'released'> = {
    list: () => rules.map(view),
    async add(pause, { atOnce }) {
      const named = pause.devices && idsOf(pause.devices)
      if (rules.length >= mostRules)
        throw new Failure('conflict', `There are ${mostRules} pauses, and no more are kept. Remove some of them first.`)
      const rule: PauseRule = {
        ...pause,
        devices: named,
        id: newId('pause'),
        createdAt: clock.epoch(),
        isConfigured: false,
        resumed: {},
      }
      // What was ended by hand before does not end this one.
      await change(() => [...rules, rule], atOnce)
      return view(rule)
    },
    async resume(names) {
      const ids = names ? idsOf(names) : devices().map(({ id }) => id)
      const ended = ids.filter(id => paused.has(id))
      await change(() => resumedRules(rules, ids, facts()))
      return ended
    },
    async remove(id) {
      const rule = rules.find(one => one.id === id)
      if (rule?.isConfigured)
        throw new Failure('conflict', `The pause ${id} is in infer.yaml (gpu.quiet). Remove it there.`)
      if (!rule) return undefined
      const last = view(rule)
      await change(() => rules.filter(one => one.id !== id))
      return last
    },
  }

  if (programs().length > 0) running = await options.running(programs())
  rules = keptRules(rules, facts())
  evaluate()
  lookAgain()
  return {
    ...own,
    /** Why a device is paused; undefined if it is not. */
    of: (id: string): DevicePause | undefined => paused.get(id),
    /** Adds to each device why it is paused. */
    marked(capacities: readonly DeviceCapacity[]): readonly DeviceCapacity[] {
      if (paused.size === 0) return capacities
      const now = clock.epoch()
      return capacities.map(device => {
        const pause = paused.get(device.id)
        if (!pause) return device
        const endsInMs = pause.endsAt === null ? null : Math.max(0, pause.endsAt - now)
        return { ...device, pause: { endsInMs, text: pause.text } }
      })
    },
    /** The devices may have changed. */
    refresh: passed,
    /** The configuration has changed. */
    async reconfigured(): Promise<void> {
      const next = withConfigured(rules)
      if (JSON.stringify(next) !== JSON.stringify(rules)) await change(() => withConfigured(rules))
    },
    close(): void {
      closed = true
      cancel()
      stopLooking()
    },
  }
}
export type DevicePauses = Awaited<ReturnType<typeof openPauses>>
