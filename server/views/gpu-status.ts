import { z } from 'zod'
import type { DeviceProcess, FleetSnapshot } from '../../core/models/fleet.ts'
import type { Pause as CorePause } from '../../core/models/pause.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  string,
} from '../../core/schemas/fields.ts'
import { DeviceStatus, deviceStatus, LeftDevice } from './device-status.ts'
import { EngineStatus, engineOf } from './engine-status.ts'
import { PoolStatus, poolStatus } from './pool-status.ts'
import { seconds, viewOf } from './view-of.ts'

export const DevicePause = namedObject('DevicePause', 'Gives devices to other programs, once or again and again.', {
  id: string('Id of the pause: `pause_…`.'),
  devices: nullable(z.array(z.string()), 'Ids of the devices; null for every GPU, or the CPU where there is none.'),
  until: nullableInteger('Unix seconds at which it ends for good; null for never.'),
  when: nullableString('`process:` and the name of a program: it pauses while that runs. Null for other pauses.'),
  schedule: nullable(
    z.object({
      cron: string('When it begins each time: minute, hour, day of the month, month, day of the week.'),
      timezone: string('IANA name of the time zone of `cron`.'),
      for: integer('Seconds that it lasts each time.'),
    }),
    'When it pauses again and again; null for other pauses.',
  ),
  configured: boolean('Whether it is in `infer.yaml`, and can only be removed there.'),
  paused_devices: array('Ids of the devices that it keeps from being used now.', z.string()),
  ends_at: nullableInteger('Unix seconds at which these are used again; null if it pauses none, or nobody knows.'),
  next_at: nullableInteger('Unix seconds at which its schedule pauses next; null without a schedule.'),
  created_at: integer('Unix seconds.'),
})

/** A pause in the shape of the API. */
export const devicePauseView = (pause: CorePause): z.input<typeof DevicePause> =>
  viewOf(DevicePause, pause, {
    devices: pause.devices && [...pause.devices],
    until: seconds(pause.until),
    when: pause.process === null ? null : `process:${pause.process}`,
    schedule: pause.schedule && {
      cron: pause.schedule.cron,
      timezone: pause.schedule.timezone,
      for: Math.round(pause.schedule.forMs / 1000),
    },
    configured: pause.isConfigured,
  })

export const gpuStatusFields = {
  object: z.literal('gpu.status'),
  devices: array('GPUs and the CPU.', DeviceStatus),
  left_devices: array('GPUs that are left to others.', LeftDevice),
  pools: array('Pools of machines besides this one.', PoolStatus),
  engines: array('Engines that run, load or stop.', EngineStatus),
  pauses: array('What gives devices to other programs, now or later.', DevicePause),
}

/** Returns the devices, what is on them, and their pauses. */
export const gpuStatusView = (
  { devices, leftDevices, pools, residents }: FleetSnapshot,
  processes: ReadonlyMap<string, readonly DeviceProcess[]>,
  pauses: readonly CorePause[],
) => ({
  object: 'gpu.status' as const,
  devices: devices.map(device => deviceStatus(device, processes.get(device.id))),
  left_devices: leftDevices.map(one => ({ ...one })),
  pools: pools.map(poolStatus),
  engines: residents.map(engineOf),
  pauses: pauses.map(devicePauseView),
})
