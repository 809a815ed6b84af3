import type { NewPause } from '../../core/models/pause.ts'
import { nextTime, parseCron } from '../../core/schedule/cron.ts'

/** A pause as it is kept. */
export interface PauseRule extends NewPause {
  id: string
  createdAt: number
  isConfigured: boolean
  /** Devices on which it was ended by hand, by id: until this time, or with null until it ends by itself. */
  resumed: Readonly<Record<string, number | null>>
}

export interface PauseFacts {
  /** Epoch milliseconds. */
  now: number
  devices: readonly { id: string; kind: string }[]
  /** The names of programs that rules wait for and that run. */
  running: ReadonlySet<string>
}

/** What a rule does now. */
export interface RuleState {
  isActive: boolean
  /** When it ends, or ends this time, epoch milliseconds; null where nobody knows, and while it is not active. */
  endsAt: number | null
  /** When its schedule begins next; null without a schedule. */
  nextAt: number | null
}

const idle: RuleState = { isActive: false, endsAt: null, nextAt: null }

/** Pure: whether a rule holds, and until when. */
export function ruleState({ until, process, schedule }: NewPause, { now, running }: PauseFacts): RuleState {
  if (until !== null && now >= until) return idle
  const earlier = (at: number) => Math.min(at, until ?? Number.POSITIVE_INFINITY)
  if (schedule) {
    const cron = parseCron(schedule.cron)
    if ('fault' in cron) return idle
    // A time within the length before now has not ended yet.
    const begun = nextTime(cron, schedule.timezone, now - schedule.forMs)
    const nextAt = nextTime(cron, schedule.timezone, now)
    if (begun > now) return { ...idle, nextAt }
    return { isActive: true, endsAt: earlier(begun + schedule.forMs), nextAt }
  }
  if (process !== null) return { isActive: running.has(process), endsAt: null, nextAt: null }
  return { isActive: true, endsAt: until, nextAt: null }
}

/** The devices of a rule that exist: every GPU, or the processor where there is none, unless it names some. */
function devicesOf({ devices }: Pick<NewPause, 'devices'>, known: PauseFacts['devices']): string[] {
  const gpus = known.filter(({ kind }) => kind !== 'cpu')
  const meant = devices === null ? (gpus.length > 0 ? gpus : known) : known.filter(({ id }) => devices.includes(id))
  return meant.map(({ id }) => id)
}

/** The devices that a rule keeps from being used now. */
export function pausedBy(rule: PauseRule, facts: PauseFacts): string[] {
  if (!ruleState(rule, facts).isActive) return []
  return devicesOf(rule, facts.devices).filter(id => {
    const until = rule.resumed[id]
    return until === undefined || (until !== null && until <= facts.now)
  })
}

/** Why a device is paused. */
export interface DevicePause {
  /** Epoch milliseconds; null where nobody knows. */
  endsAt: number | null
  /** The end of a sentence that begins with the device: `is paused until …`. */
  text: string
}

/** Pure: the devices that are paused now, by id. Of several pauses of a device, the last one to end counts. */
export function pausedDevices(rules: readonly PauseRule[], facts: PauseFacts): Map<string, DevicePause> {
  const paused = new Map<string, DevicePause>()
  for (const rule of rules)
    for (const id of pausedBy(rule, facts)) {
      const { endsAt } = ruleState(rule, facts)
      const known = paused.get(id)
      if (known && (known.endsAt === null || (endsAt !== null && endsAt <= known.endsAt))) continue
      paused.set(id, { endsAt, text: `is paused ${untilText(rule, endsAt)}` })
    }
  return paused
}

/** Callers of other organizations read it: it names no program. */
const untilText = ({ process }: NewPause, endsAt: number | null): string =>
  endsAt !== null
    ? `until ${new Date(Math.ceil(endsAt / 1000) * 1000).toISOString().replace('.000', '')}`
    : process !== null
      ? 'while another program runs'
      : 'until it is resumed'

/** Pure: the rules without those that have ended, and without what was ended by hand of those that have ended this time. */
export function keptRules(rules: readonly PauseRule[], facts: PauseFacts): PauseRule[] {
  return rules.flatMap(rule => {
    if (rule.until !== null && facts.now >= rule.until) return []
    const isOnce = rule.process === null && rule.schedule === null
    if (isOnce && devicesOf(rule, facts.devices).length > 0 && pausedBy(rule, facts).length === 0) return []
    const resumed = Object.entries(rule.resumed).filter(([, until]) => until === null || until > facts.now)
    const ended = !isOnce && !ruleState(rule, facts).isActive
    return [{ ...rule, resumed: ended ? {} : Object.fromEntries(resumed) }]
  })
}

/** Pure: the rules after what pauses these devices now was ended by hand. */
export function resumedRules(rules: readonly PauseRule[], ids: readonly string[], facts: PauseFacts): PauseRule[] {
  return rules.map(rule => {
    const { endsAt } = ruleState(rule, facts)
    const until = rule.schedule ? endsAt : null
    const ended = pausedBy(rule, facts).filter(id => ids.includes(id))
    return { ...rule, resumed: { ...rule.resumed, ...Object.fromEntries(ended.map(id => [id, until])) } }
  })
}

/** Pure: when the time alone changes what rules do next, epoch milliseconds; infinite if it never does. */
export function nextChange(rules: readonly PauseRule[], facts: PauseFacts): number {
  const times = rules.flatMap(rule => {
    const { endsAt, nextAt } = ruleState(rule, facts)
    return [endsAt, nextAt, rule.until]
  })
  return Math.min(...times.filter(at => at !== null && at > facts.now).map(Number), Number.POSITIVE_INFINITY)
}
