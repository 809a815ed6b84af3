import { z } from 'zod'
import { Duration } from '../quantities.ts'
import { type Cron, nextTime, parseCron } from '../schedule/cron.ts'
import { isTimeZone, machineTimeZone } from '../schedule/time-zone.ts'

export const scheduledActions = ['load', 'unload', 'pin'] as const
export type ScheduledAction = (typeof scheduledActions)[number]

/** The model in the example of each key. */
const scheduled = {
  id: 'qwen3-8b',
  source: '/models/qwen3-8b-q4_k_m.gguf',
  schedule: [{ at: '0 8 * * mon-fri', do: 'pin', for: '10h', timezone: 'Europe/Berlin' }],
}

/** When a model is loaded, unloaded or kept loaded by itself. */
export const ModelSchedule = z
  .array(
    z
      .strictObject({
        at: z
          .string()
          .max(200)
          .superRefine((text, ctx) => {
            const cron = parseCron(text)
            if ('fault' in cron) ctx.addIssue({ code: 'custom', message: cron.fault })
          })
          .meta({
            description: 'When: minute, hour, day of the month, month, day of the week, by the clock of `timezone`.',
            example: '0 8 * * mon-fri',
            with: scheduled,
          }),
        do: z.enum(scheduledActions).meta({
          description:
            '`load`: it is loaded, and stays for `idle_ttl` without a request. `pin`: it is loaded and stays loaded for `for`, as with `replicas.min`. `unload`: it is unloaded once its requests have ended, until the next request.',
          example: 'pin',
          with: scheduled,
        }),
        for: Duration.optional().meta({
          description: 'How long `pin` keeps it loaded, 31 days at most.',
          example: '10h',
          with: scheduled,
          absent: 'none; required for `pin`',
        }),
        timezone: z
          .string()
          .max(64)
          .refine(isTimeZone, 'This is no time zone. Write it as Europe/Berlin or UTC.')
          .optional()
          .meta({
            description: 'Time zone of `at`, by its IANA name.',
            example: 'Europe/Berlin',
            with: scheduled,
            absent: 'that of the machine',
          }),
      })
      .superRefine(({ do: action, for: forMs }, ctx) => {
        const wrong = (message: string) => ctx.addIssue({ code: 'custom', path: ['for'], message })
        if (action !== 'pin' && forMs !== undefined) wrong(`is only for 'do: pin'; '${action}' happens once at 'at'.`)
        if (action === 'pin' && (forMs === undefined || forMs < 60_000 || forMs > 31 * 86_400_000))
          wrong("is needed with 'do: pin': a minute at least, and 31 days at most.")
      }),
  )
  .max(100)
  .optional()
  .meta({
    description: 'Times at which the model is loaded, unloaded, or kept loaded for a while.',
    example: scheduled.schedule,
    absent: 'requests load it, and `idle_ttl` unloads it',
  })
type ScheduleEntry = NonNullable<z.output<typeof ModelSchedule>>[number]

/** What an entry does now and next. Times are epoch milliseconds. */
export interface ScheduledState {
  do: ScheduledAction
  /** When it happens next. */
  nextAt: number
  /** Until when it keeps the model loaded; null while it does not. */
  until: number | null
}

const cronOf = ({ at }: ScheduleEntry): Cron => parseCron(at) as Cron

/** Pure: what the entries of a schedule do now and next. */
export const scheduleStates = (entries: readonly ScheduleEntry[], now: number): ScheduledState[] =>
  entries.map(entry => {
    const { do: action, for: forMs = 0, timezone = machineTimeZone() } = entry
    const begun = action === 'pin' ? nextTime(cronOf(entry), timezone, now - forMs) : Number.POSITIVE_INFINITY
    return { do: action, nextAt: nextTime(cronOf(entry), timezone, now), until: begun <= now ? begun + forMs : null }
  })

/** Pure: what has become due after `before`, until `now`, in its order, each once. */
export const dueActions = (entries: readonly ScheduleEntry[], before: number, now: number): ScheduledAction[] =>
  scheduleStates(entries, before)
    .filter(({ nextAt }) => nextAt <= now)
    .toSorted((a, b) => a.nextAt - b.nextAt)
    .map(({ do: action }) => action)
