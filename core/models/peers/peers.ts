import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../log.ts'
import type { Config } from '../config.ts'
import type { Fleet, ModelActivity } from '../fleet.ts'
import type { Registry } from '../registry.ts'
import { askPeer } from './ask-peer.ts'
import { openKnownPeers } from './known-peers.ts'
import type { PeerLoad, PeerModel } from './listed-models.ts'
import { peerModelId } from './offered-peer-models.ts'
import type { PeerSettings } from './settings.ts'

/** Milliseconds between two questions. What they tell of queues is as old as this at most. */
const askEveryMs = 5_000

/** What is known of another infer. */
export interface PeerSnapshot {
  name: string
  url: string
  /** How many names it lists to this server, also from before it could not be reached. */
  models: number
  /** When it listed them last, epoch milliseconds; null before. */
  listedAt: number | null
  /** Why its models cannot be used now, as a sentence; null if they can, or before the first answer. */
  fault: string | null
}

type PeersConfig = Pick<Config, 'peers' | 'currency'>

interface Peer {
  settings: PeerSettings
  models: readonly PeerModel[]
  loads: ReadonlyMap<string, PeerLoad>
  listedAt: number | null
  fault: string | null
  asking: AbortController | undefined
}

/**
 * Other infers, whose models the registry offers: see the guide `second-machine`. Each is asked every five seconds what it has and
 * how long its queues are. What it had is kept in `peers.json` of the data directory, so that jobs of its models survive a
 * restart while it cannot be reached.
 */
export function openPeers(options: {
  dataDir: string
  config: PeersConfig
  environment: Readonly<Record<string, string | undefined>>
  registry: Pick<Registry, 'replacePeers'>
  log: Log
}) {
  const { environment, registry, log } = options
  const { currency } = options.config
  const known = openKnownPeers(options.dataDir, log)
  const peers = new Map<string, Peer>()
  const byModel = new Map<string, { peer: Peer; name: string }>()
  let changed: (() => unknown) | undefined
  let timer: NodeJS.Timeout | undefined
  configure(options.config)

  function offer(): void {
    byModel.clear()
    const offers = Array.from(peers, ([name, { settings, models }]) => ({ name, settings, models }))
    for (const [name, peer] of peers)
      for (const one of peer.models) byModel.set(peerModelId(name, one.name), { peer, name: one.name })
    registry.replacePeers(offers)
    known.keep(offers)
  }

  async function ask(name: string, peer: Peer): Promise<void> {
    if (peer.asking) return
    peer.asking = new AbortController()
    const answer = await askPeer(name, peer.settings, { currency, environment, signal: peer.asking.signal })
    peer.asking = undefined
    // It was changed or removed meanwhile.
    if (peers.get(name) !== peer) return
    const fault = 'fault' in answer ? answer.fault : null
    if (fault !== peer.fault) {
      if (fault !== null) log.warn(fault, { peer: name })
      else log.info('A peer can be used again', { peer: name })
    }
    peer.fault = fault
    if (!('listing' in answer)) return
    const { models, loads } = answer.listing
    peer.loads = loads
    peer.listedAt = Date.now()
    if (isDeepStrictEqual(models, peer.models)) return
    peer.models = models
    log.info('A peer has listed other models than before', { peer: name, models: models.length })
    offer()
    try {
      await changed?.()
    } catch (thrown) {
      log.error('The models that a peer has listed could not be applied', { peer: name }, thrown)
    }
  }

  function askAll(): void {
    for (const [name, peer] of peers) void ask(name, peer)
  }

  /** Follows `peers` of infer.yaml. A peer with another address or token is a new one. */
  function configure({ peers: next }: PeersConfig): void {
    const before = new Map(peers)
    peers.clear()
    for (const [name, settings] of Object.entries(next)) {
      const same = before.get(name)
      if (same && isDeepStrictEqual(same.settings, settings)) peers.set(name, same)
      else {
        const models = known.of(name, settings)
        peers.set(name, { settings, models, loads: new Map(), listedAt: null, fault: null, asking: undefined })
      }
    }
    const left = [...before].filter(([name, peer]) => peers.get(name) !== peer)
    for (const [, peer] of left) peer.asking?.abort()
    // In their order, too: the first one of several with a name has it.
    if (left.length === 0 && isDeepStrictEqual([...peers.keys()], [...before.keys()])) return
    offer()
    if (changed) askAll()
  }

  /** What a request for the model finds: the state of its own connection, then what its peer says of the model. */
  function activityOf(modelId: string, own: ModelActivity): ModelActivity {
    const found = byModel.get(modelId)
    if (!found) return own
    if (found.peer.fault !== null) return { ...own, status: 'unavailable', reason: found.peer.fault, etaMs: null }
    const there = found.peer.loads.get(found.name)
    if (!there || own.status === 'unavailable') return own
    const { status, reason, etaMs, waiting } = there
    const isWarm = status === 'warm'
    return {
      ...own,
      status,
      reason: reason ?? own.reason,
      etaMs: isWarm ? own.etaMs : etaMs,
      etaIsMeasured: isWarm ? own.etaIsMeasured : etaMs !== null,
      elsewhere: { waiting, etaMs },
    }
  }

  return {
    configure,
    /** Begins to ask the peers. The listener is called when the registry offers other models than before; what it throws is logged. */
    follow(listener: () => unknown): void {
      changed = listener
      timer = setInterval(askAll, askEveryMs)
      timer.unref()
      askAll()
    },
    /** The fleet with what the peers say of their models. */
    seenBy: (fleet: Fleet): Fleet => ({
      ...fleet,
      activity: modelId => activityOf(modelId, fleet.activity(modelId)),
      snapshot() {
        const now = fleet.snapshot()
        if (byModel.size === 0) return now
        const entries = Object.entries(now.models).map(([id, own]) => [id, activityOf(id, own)] as const)
        return { ...now, models: Object.fromEntries(entries) }
      },
    }),
    snapshot: (): PeerSnapshot[] =>
      Array.from(peers, ([name, { settings, models, listedAt, fault }]) => ({
        name,
        url: new URL(settings.url).origin,
        models: models.length,
        listedAt,
        fault,
      })),
    close(): void {
      clearInterval(timer)
      changed = undefined
      for (const peer of peers.values()) peer.asking?.abort()
      peers.clear()
    },
  }
}
export type Peers = ReturnType<typeof openPeers>
