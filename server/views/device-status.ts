import { z } from 'zod'
import type { DeviceProcess, DeviceSnapshot } from '../../core/models/fleet.ts'
import {
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { seconds, viewOf } from './view-of.ts'

const Reading = z.number().nullable()
const absence = 'Null if the driver does not report it, for MIG slices and the CPU.'

const ProcessStatus = namedObject('DeviceProcess', 'A process that uses a device.', {
  pid: integer('Process id as the driver reports it: mostly that of the host.'),
  name: nullableString('Name of the program; null if not reported.'),
  bytes: nullableInteger('Bytes of device memory that the process uses; null if not reported.'),
  engine_id: nullableString(
    'Id of the engine to which the process belongs. Null for other processes, and if infer runs in a container and the driver reports process ids of the host.',
  ),
})

/** One device in `GET /api/system/status`. */
export const DeviceStatus = namedObject('DeviceStatus', 'A GPU or the CPU.', {
  id: string('Id of the device, such as `gpu0` or `cpu`. `devices` of a model takes it.'),
  name: string('Name of the product.'),
  kind: oneOf('Maker of a GPU, `gpu` if it is unknown, or `cpu`.', ['nvidia', 'amd', 'intel', 'gpu', 'cpu']),
  total_bytes: integer('Bytes of memory.'),
  used_bytes: nullableInteger('Bytes in use as the driver measures them; null if it cannot.'),
  booked_bytes: integer('Bytes reserved for engines.'),
  pool: nullableString('The pool to which it belongs; null if it is of this machine.'),
  fault: nullableString('Why it is not used for now, as a sentence; null if it is.'),
  paused: nullable(
    z.object({
      until: nullableInteger('Unix seconds at which it is used again; null if nobody knows.'),
      reason: string('The same as a sentence.'),
    }),
    'Set while the device is given to other programs: see `POST /api/gpu/pause`.',
  ),
  utilization: Reading.describe(
    'Fraction of the last sample period (up to 1 s) in which a kernel ran on the device, 0 to 1. Null if the driver does not report it, for MIG slices and the CPU.',
  ),
  temperature_celsius: Reading.describe(`Degrees Celsius. ${absence}`),
  power_watts: Reading.describe(`Watts. ${absence}`),
  power_limit_watts: Reading.describe(`Most watts that the driver allows. ${absence}`),
  processes: nullable(
    z.array(ProcessStatus),
    'Compute processes on the device, of infer and of others. Null if the driver does not report them, for MIG slices and the CPU. In a container the driver may leave processes out.',
  ),
})

/** A card in `GET /api/system/status` and `GET /api/plan` that infer does not use. */
export const LeftDevice = namedObject('LeftDevice', 'A GPU that is left to others.', {
  id: string('Id of the device.'),
  name: string('Name of the product.'),
  reason: string('What says so, as a sentence.'),
})

/** A device in the shape of the API. `processes` is undefined where they are not known. */
export const deviceStatus = (device: DeviceSnapshot, processes: readonly DeviceProcess[] | undefined) =>
  viewOf(DeviceStatus, device, {
    total_bytes: Math.round(device.totalBytes),
    used_bytes: device.usedBytes === null ? null : Math.round(device.usedBytes),
    booked_bytes: Math.round(device.bookedBytes),
    pool: device.pool ?? null,
    paused: device.paused && { until: seconds(device.paused.endsAt), reason: device.paused.reason },
    processes: processes?.map(one => viewOf(ProcessStatus, one, {})) ?? null,
  })
