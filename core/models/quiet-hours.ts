import { z } from 'zod'
import { section } from '../config.ts'
import { Failure } from '../failure.ts'
import { Duration } from '../quantities.ts'
import type { NewPause } from './pause.ts'
import { pauseOf } from './pause-request.ts'

/** The whole file in the example of each key. */
const nights = {
  gpu: {
    quiet: [
      {
        schedule: '0 18 * * mon-fri',
        for: '14h',
        timezone: 'Europe/Berlin',
        devices: [0],
      },
    ],
  },
}
const program = { gpu: { quiet: [{ when: 'process:blender' }] } }

/** One entry of `gpu.quiet`: hours, or a program, for which devices are given away. */
const QuietHours = z
  .strictObject({
    schedule: z.string().max(200).optional().meta({
      description:
        'When they begin each time: minute, hour, day of the month, month, day of the week, by the clock of `timezone`.',
      example: '0 18 * * mon-fri',
      with: nights,
      absent: 'none; `when` is needed then',
    }),
    for: Duration.optional().meta({
      description: 'How long they last each time. Needed with `schedule`.',
      example: '14h',
      with: nights,
      absent: 'none',
    }),
    timezone: z.string().max(64).optional().meta({
      description: 'Time zone of `schedule`, by its IANA name.',
      example: 'Europe/Berlin',
      with: nights,
      absent: 'that of the machine',
    }),
    when: z.string().max(160).optional().meta({
      description:
        'A program while whose run the devices are given away, in place of `schedule`: `process:` and its name, without a path.',
      example: 'process:blender',
      with: program,
      absent: 'none',
    }),
    devices: z
      .array(z.union([z.int().min(0), z.string().min(1)]))
      .min(1)
      .optional()
      .meta({
        description: 'GPUs by number, id, UUID or name, or `cpu`.',
        unit: 'GPUs',
        example: [0],
        with: nights,
        absent: 'every GPU, or the processor where there is none',
      }),
  })
  .superRefine((entry, ctx) => {
    if (entry.schedule === undefined && entry.when === undefined)
      return ctx.addIssue({ code: 'custom', path: [], message: "needs 'schedule' with 'for', or 'when'." })
    try {
      quietPause(entry)
    } catch (thrown) {
      const { param, message } = Failure.from(thrown)
      ctx.addIssue({ code: 'custom', path: param === undefined ? [] : [param], message })
    }
  })
type QuietHours = z.output<typeof QuietHours>

/** Returns the pause of an entry. Throws Failure `invalid_value`. */
export function quietPause({ schedule, for: forMs, timezone, when, devices }: QuietHours): NewPause {
  const names = devices?.map(device => (typeof device === 'number' ? `gpu${device}` : device))
  return pauseOf({ schedule, for: forMs, timezone, when, devices: names }, 0)
}

/** The section `gpu` of infer.yaml. */
export const GpuSettings = section(
  'When GPUs are given to other programs.',
  { quiet: [{ schedule: '0 18 * * mon-fri', for: '14h' }] },
  {
    quiet: z
      .array(QuietHours)
      .max(50)
      .default([])
      .meta({
        description:
          'Hours, or programs while which they run, for which devices are given away: running requests end, models are unloaded, and requests wait, as with `infer gpu pause`.',
        example: [{ schedule: '0 18 * * mon-fri', for: '14h', devices: [0] }],
      }),
  },
)
