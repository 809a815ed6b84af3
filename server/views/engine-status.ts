import { z } from 'zod'
import type { ResidentSnapshot } from '../../core/models/fleet.ts'
import {
  array,
  integer,
  namedObject,
  nullableInteger,
  nullableString,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { EnginePlacement, placementView } from './engine-placement.ts'
import { viewOf } from './view-of.ts'

const EngineAddressStatus = namedObject('EngineAddress', 'An address of an engine that infer does not start.', {
  url: string('Address of the server, without the path.'),
  state: oneOf('`unavailable`: its last requests failed, and requests go to other addresses first.', [
    'ready',
    'unavailable',
  ]),
  failures: integer('How many requests in a row have failed there.'),
  reason: nullableString('Why the last of them failed, as the end of a sentence; null since one has succeeded.'),
  retry_after: nullableInteger('Seconds until it gets requests again; null while it is ready.'),
})

export const EngineStatus = namedObject('EngineStatus', 'A process that serves a model.', {
  id: string('Id of the engine.'),
  model_id: string('Id of the model that it serves.'),
  adapters: array('Ids of the LoRA adapters of the model, which it serves too.', z.string()),
  state: oneOf('State of the engine. `parked`: it has given its memory back, and is woken by the next request.', [
    'starting',
    'ready',
    'parked',
    'stopping',
  ]),
  pid: nullableInteger('Process id; null for a remote engine, or before it runs.'),
  devices: array(
    'Ids of the devices that it uses. In a cluster as many as it gets: the cluster chooses which.',
    z.string(),
  ),
  placement: EnginePlacement,
  pool: nullableString('The pool in which it runs or waits for a machine; null on this machine.'),
  addresses: array('Addresses of an engine that infer does not start; empty for others.', EngineAddressStatus),
  memory_bytes: integer('Bytes of memory reserved for it on all devices.'),
  device_memory_bytes: array('Bytes reserved on each of `devices`, in their order.', z.int()),
  booked_memory_bytes: integer('Bytes that were reserved for it when it was started, by estimate.'),
  used_memory_bytes: nullableInteger('Bytes that it used when that was measured last; null before.'),
  slots: integer('How many requests it can serve at a time.'),
  busy: integer('How many requests it serves now.'),
  started_at: integer('Unix seconds.'),
  taken_over_at: nullableInteger(
    'Unix seconds at which this server took it over from the server before, which had loaded it. Null if this server started it.',
  ),
  last_used_at: integer('Unix seconds of the last request.'),
  ends_at: nullableInteger(
    'Unix seconds at which its machine ends it, as the time limit of a job on a cluster does. Null if there is no such time, or it is not known.',
  ),
  queued_ms: nullableInteger(
    'Milliseconds that it waited for a machine of its pool before it was started. Null on this machine, before it runs, and if this server took it over.',
  ),
  parking: nullableString(
    'What happens to it when another model needs the memory, and why, in sentences. Null before it starts, and for kinds of engines that cannot be parked.',
  ),
  upcoming: nullableString(
    'What running executions of workflows that need its model next mean for it, as a sentence: it is loaded ahead, or kept. Null if none does.',
  ),
})

/** Returns the status of an engine, for operators. */
export const engineOf = (resident: ResidentSnapshot): z.input<typeof EngineStatus> =>
  viewOf(EngineStatus, resident, {
    id: resident.engineId,
    adapters: [...resident.adapters],
    placement: placementView(resident.placement),
    pool: resident.pool ?? null,
    addresses: resident.addresses.map(({ url, state, failures, reason, retryMs }) => ({
      url,
      state,
      failures,
      reason,
      retry_after: retryMs === null ? null : Math.ceil(retryMs / 1000),
    })),
    memory_bytes: Math.round(resident.bytes),
    device_memory_bytes: resident.shares.map(Math.round),
    booked_memory_bytes: Math.round(resident.bookedBytes),
    used_memory_bytes: resident.usedBytes === null ? null : Math.round(resident.usedBytes),
    busy: resident.leases,
  })
