import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isObject, listOf, objectOf } from '../../json.ts'
import type { Log } from '../../log.ts'
import { optionalJson } from '../../optional-file.ts'
import type { PeerModel } from './listed-models.ts'
import type { PeerOffer } from './offered-peer-models.ts'
import type { PeerSettings } from './settings.ts'

type Known = Readonly<Record<string, { url: string; models: readonly PeerModel[] }>>

/** Whether a value has what all models of peers have; the rest is checked when they are offered. */
const isPeerModel = (value: unknown): value is PeerModel =>
  isObject(value) && typeof value.name === 'string' && Array.isArray(value.tasks)

/**
 * The models that the peers have listed last, in `peers.json` of the data directory. A file that cannot be read or written costs
 * only what it would have told.
 */
export function openKnownPeers(dataDir: string, log: Log) {
  const path = join(dataDir, 'peers.json')
  let stored = objectOf(optionalJson(path)) as Known
  return {
    /** The models that the peer has listed at this address. */
    of(name: string, { url }: PeerSettings): readonly PeerModel[] {
      const known = Object.hasOwn(stored, name) ? stored[name] : undefined
      return known?.url === url ? listOf(known.models).filter(isPeerModel) : []
    },
    keep(offers: readonly PeerOffer[]): void {
      const next: Known = Object.fromEntries(
        offers.map(({ name, settings, models }) => [name, { url: settings.url, models }]),
      )
      if (isDeepStrictEqual(next, stored)) return
      stored = next
      try {
        writeFileSync(`${path}.new`, JSON.stringify(stored), { mode: 0o600 })
        renameSync(`${path}.new`, path)
      } catch (thrown) {
        log.warn('The models of the peers could not be stored', { path }, thrown)
      }
    },
  }
}
