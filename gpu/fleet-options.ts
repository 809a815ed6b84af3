import { freemem } from 'node:os'
import type { Limits } from '../core/config.ts'
import type { Log } from '../core/log.ts'
import type { DeviceSetting } from '../core/models/device-setting.ts'
import type { Model } from '../core/models/model.ts'
import type { NewPause } from '../core/models/pause.ts'
import type { Pools } from '../core/models/pools.ts'
import type { UsedSlots } from '../core/models/used-slots.ts'
import type { Caches } from './caches/caches.ts'
import type { Clock } from './clock.ts'
import type { KeeperClient } from './launcher/keeper-client.ts'
import type { OpenPoolLauncher } from './pool-launches.ts'
import type { ProbedMachine } from './probe-machine.ts'
import { defaultRules, type ResidencyRules } from './residency/advance.ts'

/** What the fleet needs of the server and of the machine. */
export interface FleetOptions {
  models: () => readonly Model[]
  /** The pauses of devices in the configuration. */
  quiet?: () => readonly NewPause[]
  dataDir: string
  /** Identifies this run of the server; processes of earlier runs in the same directory are ended. */
  bootId: string
  /** The run of a server that still runs there and has handed over: its engines are left alone. */
  otherBootId?: string | undefined
  /** The slots that the last requests of that server use; `Fleet.usedElsewhere` changes them. */
  usedElsewhere?: UsedSlots | undefined
  log: Log
  limits: Pick<Limits, 'engine_backoff' | 'order_bound' | 'cancel_grace' | 'parking_memory'>
  /** Called when an engine is ready, with the milliseconds that it took. */
  onLoaded?: (modelId: string, ms: number) => void
  clock?: Clock
  /** The environment from which the engines' environments are built; by default that of this process. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Files outside the data directory that no engine may read: the configuration, keys of certificates. */
  secrets?: readonly string[]
  /** The cards that it may use, as `devices` of infer.yaml names them; absent: every card. */
  ownDevices?: readonly DeviceSetting[] | undefined
  machine?: ProbedMachine
  /** The pools of infer.yaml, and what opens the launcher of one; absent: there are none. */
  pools?: () => Pools
  openPoolLauncher?: OpenPoolLauncher
  /** The parent of the engines, which outlives the server; absent: they are children of this process, and end with it. */
  keeper?: KeeperClient | undefined
  /** Keeps conversations when their engine ends; absent: none are saved. */
  caches?: Caches | undefined
}

/**
 * Bytes of the main memory that parked engines may use together. To be read once: what they have got is not free any more.
 * `totalBytes`: the memory of the machine that infer may use.
 */
export const parkingBudgetOf = (limits: Pick<Limits, 'parking_memory'>, totalBytes: number): number =>
  limits.parking_memory ?? Math.min(freemem(), totalBytes) / 4

export const residencyRules = ({
  engine_backoff,
  order_bound,
}: Pick<Limits, 'engine_backoff' | 'order_bound'>): ResidencyRules => ({
  ...defaultRules,
  backoff: { ...defaultRules.backoff, firstMs: engine_backoff },
  orderBound: order_bound,
})
