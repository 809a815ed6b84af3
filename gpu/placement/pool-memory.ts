import type { Log } from '../../core/log.ts'
import type { DeviceSnapshot } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { bookable, type Device, type Discovery, noReadings, shownDevice } from '../devices/device.ts'
import { deviceFilesOf, visibilityVariables } from '../devices/visible-devices.ts'
import { backendThere } from '../launcher/ssh/portable-launch.ts'
import type { Backend } from '../presets/preset.ts'
import type { Resident } from '../residency/model-state.ts'
import { shareOn } from '../residency/occupancy.ts'
import type { DeviceCapacity } from '../residency/place.ts'
import { canLimitTo } from './card-backend.ts'

/** Milliseconds between two queries of what a pool has, and that one may take. */
const pollMs = 10_000
const limitMs = 8_000
/** What main memory changes by itself is no change: models would be sized again each time. */
const roughly = (bytes: number): number => Math.round(bytes / 2 ** 28)

/** A pool as its memory is booked. */
export interface PoolOfDevices {
  name: string
  /** Its launcher gives whole cards and chooses which: an engine gets all memory of as many as it needs. */
  wholeCards: boolean
  capacity(signal: AbortSignal): Promise<Discovery>
  /** Calls the listener when something has changed there: it may answer now. */
  watch(listener: () => void): void
}

/** A device of a pool, with the machine on which it is. */
interface PooledDevice extends Device {
  node: string
}

/**
 * What one pool has, asked every few seconds, and as soon as it may answer again. While it does not answer, its devices
 * stay as they were, nothing is placed there, and its engines run on. `asked` is called each time, and `changed` when what
 * may be booked has changed.
 */
export function openPoolMemory(options: {
  pool: PoolOfDevices
  residents: () => readonly Resident[]
  log: Log
  asked: () => void
  changed: () => void
}) {
  const { pool, residents, log, asked, changed } = options
  let devices: PooledDevice[] = []
  let builtIn: Discovery['builtInBackend']
  let unknown: string | null = `The pool '${pool.name}' was not asked yet.`
  let timer: NodeJS.Timeout | undefined
  let closed = false
  let isAsking = false
  /** Something has changed while it was asked. */
  let hasChanged = false
  let reported = ''
  let capacities: readonly DeviceCapacity[] = []

  const bookedOn = (id: string): number => residents().reduce((sum, one) => sum + shareOn(one, id), 0)

  const capacityOf = (device: PooledDevice): DeviceCapacity => {
    const { id, kind, totalBytes, usedBytes, node } = device
    const others = usedBytes === null ? 0 : Math.max(0, usedBytes - bookedOn(id))
    const own = Math.floor(totalBytes * bookable[kind === 'cpu' ? 'cpu' : 'gpu'])
    return {
      id,
      kind: kind === 'cpu' ? 'cpu' : 'gpu',
      capacity: Math.max(0, own - others),
      totalBytes,
      usedByOthers: others,
      pool: pool.name,
      node,
      ...sharingOf(device),
      ...(unknown !== null && { unknown }),
    }
  }

  /** A card whose memory is that of its machine, and the processor of that machine, share it. */
  function sharingOf({ id, node }: PooledDevice): Pick<DeviceCapacity, 'sharesWith'> {
    const shared = devices.filter(one => one.node === node && (one.isUnified || one.kind === 'cpu')).map(one => one.id)
    return shared.length > 1 && shared.includes(id) ? { sharesWith: shared.filter(other => other !== id) } : {}
  }

  /** A pool that has never answered still has a row, which says why. */
  const nothingKnown = (): DeviceCapacity => ({
    id: pool.name,
    kind: 'gpu',
    capacity: 0,
    pool: pool.name,
    node: '',
    ...(unknown !== null && { unknown }),
  })

  async function ask(): Promise<void> {
    clearTimeout(timer)
    isAsking = true
    hasChanged = false
    try {
      const found = await limited(signal => pool.capacity(signal))
      if (found.broken) throw new Error(found.reason ?? 'its devices cannot be used')
      if (unknown !== null && devices.length > 0) log.info('A pool answers again', { pool: pool.name })
      devices = found.devices.map(device => pooled(pool, device))
      builtIn = found.builtInBackend
      unknown = null
    } catch (thrown) {
      const reason = (thrown as Error).message
      if (unknown !== reason) log.warn('It is not known what a pool has', { pool: pool.name, reason })
      unknown = reason
    }
    isAsking = false
    capacities = devices.length > 0 ? devices.map(capacityOf) : unknown === null ? [] : [nothingKnown()]
    const now = JSON.stringify([builtIn, capacities], (_, value: unknown) =>
      typeof value === 'number' ? roughly(value) : value,
    )
    if (closed) return
    asked()
    timer = setTimeout(() => void ask(), hasChanged && unknown !== null ? 0 : pollMs)
    timer.unref()
    if (now === reported) return
    reported = now
    changed()
  }

  /** The devices of the machines with most cards, of these with most memory: for them models are sized. */
  function largestNodes(count: number): PooledDevice[] {
    const nodes = [...Map.groupBy(devices, ({ node }) => node).values()]
    const sizeOf = (all: readonly PooledDevice[]) => {
      const cards = all.filter(({ kind }) => kind !== 'cpu')
      return { cards: cards.length, bytes: cards.reduce((sum, { totalBytes }) => sum + totalBytes, 0) }
    }
    const largest = nodes.toSorted((a, b) => sizeOf(b).cards - sizeOf(a).cards || sizeOf(b).bytes - sizeOf(a).bytes)
    return largest.slice(0, count).flat()
  }

  const cardsOf = (resident: Pick<Resident, 'devices'>): Device[] =>
    devices.filter(({ id, kind }) => kind !== 'cpu' && resident.devices.includes(id))

  capacities = [nothingKnown()]
  const first = ask()
  pool.watch(() => {
    hasChanged = true
    if (unknown !== null && !isAsking && !closed) void ask()
  })
  return {
    /** Resolves when it was asked once. */
    first,
    name: pool.name,
    wholeCards: pool.wholeCards,
    capacities: (): readonly DeviceCapacity[] => capacities,
    /** Why it is not known what it has, as a sentence; null if it is. */
    unknown: (): string | null => unknown,
    /** What models are sized for that span so many machines of it, as if these were this one. */
    largest: (count: number) => ({
      devices: (): Device[] => largestNodes(count),
      left: () => [],
      capacities: (): DeviceCapacity[] => {
        const ids = new Set(largestNodes(count).map(({ id }) => id))
        return capacities.flatMap(({ pool: _pool, node: _node, unknown: _unknown, ...one }) =>
          ids.has(one.id) ? [one] : [],
        )
      },
      refresh: async () => false,
    }),
    /** How an engine there is started: see the same of `Memory`. */
    get cores() {
      return Math.max(1, ...devices.map(({ cores }) => cores ?? 0))
    },
    cardsOf,
    /** The backend by which the built-in engine can use the cards there for a model; null on the processor. */
    backendFor({ gpu = 'auto' }: Pick<Model, 'gpu'>): Backend | null {
      if (!builtIn || (gpu !== 'auto' && gpu !== builtIn)) return null
      const [use, cards] = [builtIn, devices.filter(({ kind }) => kind !== 'cpu')]
      return cards.some(card => canLimitTo(card, use, cards)) ? { gpu: use, folder: backendThere } : null
    },
    sharesOfDevices(resident: Pick<Resident, 'devices' | 'bytes' | 'shares'>): { ofAll: number; ofFree: number } {
      const own = devices.filter(({ id }) => resident.devices.includes(id))
      const shares = own.map(({ id, totalBytes }) => shareOn(resident, id) / totalBytes)
      const most = shares.length === 0 ? 1 : Math.max(...shares)
      return { ofAll: most, ofFree: most }
    },
    visibleTo(resident: Pick<Resident, 'devices'>) {
      if (pool.wholeCards) return { variables: {}, files: [] }
      const [first] = cardsOf(resident)
      const cards = devices.filter(
        ({ kind, node }) => kind !== 'cpu' && node === (first as PooledDevice | undefined)?.node,
      )
      return { variables: visibilityVariables(cards, cardsOf(resident)), files: deviceFilesOf(cardsOf(resident)) }
    },
    snapshot: (): Omit<DeviceSnapshot, 'paused'>[] =>
      devices.map(device => ({
        ...shownDevice(device),
        fault: unknown,
        bookedBytes: Math.round(bookedOn(device.id)),
        pool: pool.name,
      })),
    close(): void {
      closed = true
      clearTimeout(timer)
    },
  }
}
export type PoolMemory = ReturnType<typeof openPoolMemory>

/** `node1/gpu0` of the pool `lab` is `lab/node1/gpu0`, on the machine `node1`. */
function pooled({ name, wholeCards }: PoolOfDevices, device: Device): PooledDevice {
  const cudaId = wholeCards && device.kind !== 'cpu' ? (device.cudaId ?? device.id) : device.cudaId
  const at = device.id.lastIndexOf('/')
  return { ...noReadings, ...device, cudaId, id: `${name}/${device.id}`, node: at < 0 ? '' : device.id.slice(0, at) }
}

/** The result of a query; rejects when it takes longer, also where it does not heed its signal. */
async function limited<T>(query: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(limitMs)
  const late = new Promise<never>((_, refuse) =>
    signal.addEventListener('abort', () => refuse(new Error(`It has not answered within ${limitMs / 1000} s.`)), {
      once: true,
    }),
  )
  return await Promise.race([query(signal), late])
}
