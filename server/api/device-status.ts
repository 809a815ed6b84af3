import { z } from 'zod'
import type { DeviceProcess, DeviceSnapshot } from '../../core/models/fleet.ts'

const Reading = z.number().nullable().describe('Null where the driver does not report it, for MIG slices and the CPU.')

const ProcessStatus = z
  .object({
    pid: z.int().describe('As the driver reports it: mostly in the PID namespace of the host.'),
    name: z.string().nullable(),
    bytes: z.int().nullable().describe('Memory of the card that the process uses; null where it is not reported.'),
    engine_id: z
      .string()
      .nullable()
      .describe(
        'The engine to whose process tree it belongs. Null for other processes, and where infer runs in a container and the driver reports PIDs of the host.',
      ),
  })
  .meta({ id: 'DeviceProcess' })

/** One device in `GET /api/system/status`. */
export const DeviceStatus = z
  .object({
    id: z.string(),
    name: z.string(),
    kind: z.enum(['nvidia', 'cpu']),
    total_bytes: z.int(),
    used_bytes: z.int().nullable().describe('Measured by the driver; null where it cannot be.'),
    booked_bytes: z.int().describe('Promised to engines.'),
    utilization: Reading.describe(
      'Fraction of the last sample period (up to 1 s) in which a kernel ran on the card, 0 to 1. Null where the driver does not report it, for MIG slices and the CPU.',
    ),
    temperature_celsius: Reading,
    power_watts: Reading,
    power_limit_watts: Reading,
    processes: z
      .array(ProcessStatus)
      .nullable()
      .describe(
        'Compute processes on the card, of infer and of others. Null where the driver does not report them, for MIG slices and the CPU. In a container the driver may leave processes out.',
      ),
  })
  .meta({ id: 'DeviceStatus' })

/** A device in the shape of the API. `processes` is undefined where they are not known. */
export const deviceStatus = (
  device: DeviceSnapshot,
  processes: readonly DeviceProcess[] | undefined,
): z.input<typeof DeviceStatus> => ({
  id: device.id,
  name: device.name,
  kind: device.kind,
  total_bytes: Math.round(device.totalBytes),
  used_bytes: device.usedBytes === null ? null : Math.round(device.usedBytes),
  booked_bytes: Math.round(device.bookedBytes),
  utilization: device.utilization,
  temperature_celsius: device.temperatureCelsius,
  power_watts: device.powerWatts,
  power_limit_watts: device.powerLimitWatts,
  processes: processes?.map(({ pid, name, bytes, engineId }) => ({ pid, name, bytes, engine_id: engineId })) ?? null,
})
