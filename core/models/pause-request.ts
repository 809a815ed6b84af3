import { invalidValue } from '../failure.ts'
import { parseCron } from '../schedule/cron.ts'
import { isTimeZone, machineTimeZone } from '../schedule/time-zone.ts'
import type { NewPause, PauseSchedule } from './pause.ts'

/** A pause as it is asked for. Times are epoch milliseconds, lengths milliseconds. */
export interface PauseRequest {
  devices?: readonly string[] | undefined
  until?: number | undefined
  for?: number | undefined
  /** `process:NAME`. */
  when?: string | undefined
  schedule?: string | undefined
  timezone?: string | undefined
}

/** The longest pause of a schedule, milliseconds. */
const longestMs = 31 * 86_400_000

/**
 * Returns the pause that is asked for. Throws Failure `invalid_value` where the parts do not go together, its time is over, or
 * its schedule is invalid.
 */
export function pauseOf(request: PauseRequest, now: number): NewPause {
  const { devices = null, until, for: forMs, when, schedule, timezone } = request
  const refuse = (param: string, message: string): never => {
    throw invalidValue(message, { param })
  }
  if (until !== undefined && until <= now)
    refuse('until', "The time of 'until' is over: nothing would be paused. Give a later one.")
  if (schedule !== undefined) {
    if (when !== undefined) refuse('when', "A pause has either 'when' or 'schedule'. Create two pauses.")
    if (forMs === undefined) return refuse('for', "With 'schedule' the pause needs 'for': how long it lasts each time.")
    return { devices, until: until ?? null, process: null, schedule: scheduleOf({ schedule, timezone, forMs }) }
  }
  if (timezone !== undefined) refuse('timezone', "'timezone' is only for a pause with 'schedule'.")
  if (until !== undefined && forMs !== undefined)
    refuse('for', "A pause has either 'until' or 'for', unless it has a 'schedule'.")
  const end = until ?? (forMs === undefined ? null : now + forMs)
  return { devices, until: end, process: when === undefined ? null : programOf(when), schedule: null }
}

/** Returns the schedule of a pause. Throws Failure `invalid_value`. */
function scheduleOf(request: { schedule: string; timezone?: string | undefined; forMs: number }): PauseSchedule {
  const { schedule, timezone = machineTimeZone(), forMs } = request
  const cron = parseCron(schedule)
  if ('fault' in cron) throw invalidValue(cron.fault, { param: 'schedule' })
  if (!isTimeZone(timezone))
    throw invalidValue(`'${timezone}' is no time zone. Write it as Europe/Berlin or UTC.`, { param: 'timezone' })
  if (forMs < 60_000 || forMs > longestMs)
    throw invalidValue('A pause of a schedule lasts a minute at least, and 31 days at most.', { param: 'for' })
  return { cron: cron.text, timezone, forMs }
}

/** Returns the name of the program in `process:NAME`. Throws Failure `invalid_value`. */
function programOf(when: string): string {
  const [, name = ''] = /^process:([^/\\\0]{1,128})$/.exec(when) ?? []
  if (name.trim() !== '') return name.trim()
  throw invalidValue(
    `'${when}' is no condition of a pause. Write process: and the name of a program, without its path, as in process:blender.`,
    { param: 'when' },
  )
}
