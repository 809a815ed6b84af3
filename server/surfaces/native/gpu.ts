import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { Pause } from '../../../core/models/pause.ts'
import { pauseOf } from '../../../core/models/pause-request.ts'
import {
  array,
  namedObject,
  optional,
  optionalBoolean,
  optionalStringUpTo,
  strictObject,
  unixTime,
} from '../../../core/schemas/fields.ts'
import { actorOf, requireMachineOwner } from '../../http/access/reach.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { DevicePause, devicePauseView, gpuStatusFields, gpuStatusView } from '../../views/gpu-status.ts'
import { Wait, waitFor } from '../../work/wait-seconds.ts'

const route = routeOf({ tag: 'System' })

const Devices = z
  .array(z.union([z.string().min(1).max(128), z.int().min(0).transform(String)]))
  .min(1)
  .max(256)

const PauseRequest = strictObject('DevicePauseRequest', 'Which devices are given to other programs, and when.', {
  devices: optional(
    Devices,
    'GPUs by number, id, UUID or name, or `cpu`. Default: every GPU, or the CPU where there is none.',
  ),
  until: optional(unixTime, 'Unix seconds at which it ends for good. Default: when it is resumed.'),
  for: optional(
    z.int().min(1).max(315_360_000),
    'Seconds until it ends, in place of `until`; with `schedule` how long it lasts each time.',
  ),
  when: optionalStringUpTo(
    160,
    '`process:` and the name of a program, as in `process:blender`: it pauses while that runs on the machine or on a GPU.',
  ),
  schedule: optionalStringUpTo(
    200,
    'When it begins each time: minute, hour, day of the month, month, day of the week, as in `0 18 * * 1-5`.',
  ),
  timezone: optionalStringUpTo(
    64,
    'IANA name of the time zone of `schedule`, such as `Europe/Berlin`. Default: that of the machine.',
  ),
  now: optionalBoolean(
    '`true`: running requests do not end first. Those that have sent nothing wait again, others fail.',
  ),
})

const ResumeRequest = strictObject('DeviceResumeRequest', 'Which devices are used again.', {
  devices: optional(Devices, 'GPUs by number, id, UUID or name, or `cpu`. Default: all that are paused.'),
  pause: optionalStringUpTo(64, 'Id of a pause that is removed, in place of `devices`.'),
})

const Status = namedObject(
  'GpuStatus',
  'The devices, what is on them, and when they are given to others.',
  gpuStatusFields,
)
const Paused = namedObject('GpuPaused', 'A pause, and the devices after `wait`.', {
  ...gpuStatusFields,
  pause: DevicePause,
})
const Resumed = namedObject('GpuResumed', 'The devices after their pause.', {
  ...gpuStatusFields,
  resumed: array('Ids of the devices that are used again.', z.string()),
})

type GpuOwners = Owners<'fleet' | 'organizations'>

async function statusOf({ fleet }: GpuOwners) {
  const processes = await fleet.deviceProcesses()
  return gpuStatusView(fleet.snapshot(), processes, fleet.pauses.list())
}

/** Records what was done to a pause in the audit log. */
const recorded = (
  act: 'created' | 'ended' | 'removed',
  { id }: Pause,
  { before = null, after = null }: { before?: object | null; after?: object | null },
  exchange: ClientExchange,
  { organizations }: GpuOwners,
): Promise<void> =>
  organizations.record({
    organizationId: exchange.caller.organizationId,
    at: Date.now(),
    actor: actorOf(exchange),
    action: `device_pause.${act}`,
    targetId: id,
    before: before && { ...before },
    after: after && { ...after },
  })

/** The routes that give devices to other programs. */
export const gpuRoutes = (owners: GpuOwners) => [
  route('GET /api/gpu', 'admin:read', {
    summary: 'List devices',
    description:
      'Returns the GPUs and the CPU with their memory, the engines and other programs on them, and the pauses that give them to other programs. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch'],
    response: Status,
    handle: (_, exchange) => {
      requireMachineOwner(exchange, 'The devices of the machine are')
      return statusOf(owners)
    },
  }),
  route('POST /api/gpu/pause', 'admin:write', {
    bucket: 'api',
    summary: 'Pause devices',
    description:
      'Gives devices to other programs: no request begins there, running requests end, and the engines are unloaded. Requests wait in their order, within their own time limits, unless another device has room for their model; jobs wait as long as it takes. Models that are kept loaded come back at the end. It survives a restart of the server. The answer comes when the memory is free, or after `wait` seconds. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'conflict', 'disk_full'],
    query: Wait,
    body: PauseRequest,
    example: { devices: [0], for: 7200 },
    response: Paused,
    handle: async ({ query, body }, exchange) => {
      requireMachineOwner(exchange, 'The devices of the machine are')
      const { now = false, until, for: seconds, ...rest } = body
      const request = pauseOf(
        {
          ...rest,
          until: until === undefined ? undefined : until * 1000,
          for: seconds === undefined ? undefined : seconds * 1000,
        },
        Date.now(),
      )
      const pause = await owners.fleet.pauses.add(request, { atOnce: now })
      const { id: _, ...after } = devicePauseView(pause)
      await recorded('created', pause, { after }, exchange, owners)
      await waitFor(query.wait, owners.fleet.pauses.released(), exchange)
      return { ...(await statusOf(owners)), pause: devicePauseView(pause) }
    },
  }),
  route('POST /api/gpu/resume', 'admin:write', {
    bucket: 'api',
    summary: 'Resume devices',
    description:
      'Uses paused devices again: ends what pauses them now. A pause with a schedule or a program pauses them again at its next time; with `pause` it is removed. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch', 'not_found', 'conflict', 'disk_full'],
    body: ResumeRequest,
    example: { devices: [0] },
    response: Resumed,
    handle: async ({ body: { devices, pause: id } }, exchange) => {
      requireMachineOwner(exchange, 'The devices of the machine are')
      const { pauses } = owners.fleet
      const before = pauses.list()
      if (id !== undefined) {
        const removed = await pauses.remove(id)
        if (!removed) throw new Failure('not_found', `There is no pause ${id}. GET /api/gpu lists them.`)
        const { id: _, ...was } = devicePauseView(removed)
        await recorded('removed', removed, { before: was }, exchange, owners)
        const still = pauses.list().flatMap(({ pausedDevices }) => pausedDevices)
        const resumed = removed.pausedDevices.filter(device => !still.includes(device))
        return { ...(await statusOf(owners)), resumed }
      }
      const resumed = await pauses.resume(devices ?? null)
      for (const pause of before) {
        const ended = pause.pausedDevices.filter(device => resumed.includes(device))
        if (ended.length === 0) continue
        const left = pause.pausedDevices.filter(device => !ended.includes(device))
        const change = { before: { paused_devices: pause.pausedDevices }, after: { paused_devices: left } }
        await recorded('ended', pause, change, exchange, owners)
      }
      return { ...(await statusOf(owners)), resumed }
    },
  }),
]
