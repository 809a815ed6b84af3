import type { Resident } from '../residency/model-state.ts'
import { chooseReplica } from './choose-replica.ts'
import { openPrefixIndex, type PrefixIndex } from './prefix-index.ts'
import { blockBytes, promptBlocks } from './prompt-blocks.ts'

/** An English token has about four bytes. */
const tokenBytes = 4
/** Blocks of an engine whose context is unknown, and at most: a block takes about 50 bytes. */
const [usualBlocks, mostBlocks] = [8_192, 65_536]

const blocksOf = ({ slots, serves }: Resident): number => {
  const context = serves.model.context_length
  if (context === undefined) return usualBlocks
  return Math.min(mostBlocks, Math.max(1, Math.floor((context * slots * tokenBytes) / blockBytes)))
}

/** Sends a prompt to the engine of a model that has computed its beginning. */
export function openAffinity() {
  const models = new Map<string, PrefixIndex>()

  return {
    /**
     * Chooses among the engines of a model, and returns a function that takes the id of the engine that gets the prompt.
     * It reads the prompt: a millisecond for 400 kB. `from`: the engine of which the request has a slot already. Undefined
     * where the model never has several engines.
     */
    choose(
      residents: readonly Resident[],
      body: string | Uint8Array,
      from?: string,
    ): { engineId: string | undefined; given: (engineId: string) => void } | undefined {
      const [first] = residents
      if (first === undefined || (residents.length === 1 && (first.serves.model.replicas.max ?? 1) < 2))
        return undefined
      const { id } = first.serves.model
      const index = models.get(id) ?? openPrefixIndex(blocksOf(first))
      models.set(id, index)
      // One that is parked has dropped its cache.
      const awake = residents.filter(({ state }) => state !== 'parked')
      if (index.engines > awake.length) index.keep(new Set(awake.map(({ engineId }) => engineId)))
      const blocks = promptBlocks(body)
      const ready = residents.filter(
        ({ state, draining, unreachable }) => state === 'ready' && draining === null && unreachable === null,
      )
      const chosen = chooseReplica(
        ready.map(({ engineId, leases, slots }) => ({
          engineId,
          leases: engineId === from ? leases - 1 : leases,
          slots,
          common: index.common(engineId, blocks),
          known: index.size(engineId),
        })),
      )
      return { engineId: chosen?.engineId, given: engineId => index.add(engineId, blocks) }
    },
    /** Forgets the models that are not among these. */
    keep(modelIds: ReadonlySet<string>): void {
      for (const id of models.keys()) if (!modelIds.has(id)) models.delete(id)
    },
  }
}
