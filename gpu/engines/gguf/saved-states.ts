import { createHash } from 'node:crypto'
import { open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import type { Log } from '../../../core/log.ts'
import { ownerHeader } from '../owner.ts'
import type { Exclusive } from './mutex.ts'
import type { NativeContext } from './native.ts'
import { reusableTokens } from './prompt.ts'
import { commonStart, type Slot } from './slots.ts'

/** The memory of one conversation in a file. */
interface SavedState {
  /** Its file: the key of its content, and its bytes. */
  name: string
  key: string
  bytes: number
  tokens: readonly number[]
  /** Leading tokens that were computed as for a reproducible request, see prompt.ts. */
  exact: number
}

export interface SavedStateOptions {
  /** Contains one folder for each organization, which is named by an opaque text. */
  folder: string
  context: Pick<
    NativeContext,
    'saveSequenceStateToFile' | 'loadSequenceStateFromFile' | 'getSequenceKvCacheMaxPosition' | 'disposeSequence'
  >
  /** Tokens of one request, prompt and answer together. */
  contextSize: number
  /** What a state depends on besides the model: the build of llama.cpp, the device, the number format. */
  settings: readonly unknown[]
  /** Estimated bytes of the memory of one token, before a state was saved. */
  tokenBytes: number
  /** Computes with the context. */
  exclusive: Exclusive
  log: Log
}

/** A shorter conversation is computed again about as fast as it is read. */
const minTokens = 256
/** A state is loaded if it saves at least this many tokens. */
const minGain = 128
/** Beyond the memory of its tokens a state has their numbers and a header. */
const headerBytes = 64 << 10
const ownerPattern = /^[0-9a-f]{32}$/
const namePattern = /^(?<key>(?<settings>[0-9a-f]{16})-(?<exact>\d+)-[0-9a-f]{32})-(?<bytes>\d+)\.state$/

const digest = (text: string | Uint8Array, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length)

/** Returns the `owner` of a generation; undefined without the header, and for a request that must not be stored. */
export function savingOwner(headers: IncomingHttpHeaders, body: unknown): string | undefined {
  const owner = headers[ownerHeader]
  const isStored = (body as { store?: unknown } | null)?.store !== false
  return typeof owner === 'string' && ownerPattern.test(owner) && isStored ? owner : undefined
}

/**
 * Conversations of this model in files, so that they outlive the engine. A conversation is saved only into an existing
 * folder of its owner, and is loaded only for requests of the same owner whose tokens equal those in the file. The files
 * belong to the server, which removes them at any time.
 */
export function openSavedStates(options: SavedStateOptions) {
  const { folder, context, contextSize, exclusive, log } = options
  const own = digest(JSON.stringify(options.settings), 16)
  /** What an adapter has computed is not that of the model. */
  const settingsWith = (adapter: string | undefined): string =>
    adapter === undefined ? own : digest(JSON.stringify([...options.settings, adapter]), 16)
  /** The states that were read so far, by owner and settings, and by name. */
  const known = new Map<string, Map<string, SavedState>>()
  let perToken = options.tokenBytes
  let isOff = false

  /** Returns the states of an owner that this engine can load; undefined if he has no folder. */
  async function statesOf({ owner, adapter }: Computed): Promise<SavedState[] | undefined> {
    const settings = settingsWith(adapter)
    const names = await readdir(join(folder, owner)).catch(() => undefined)
    const place = `${owner} ${settings}`
    const before = known.get(place)
    if (names === undefined) return void known.delete(place)
    const states = new Map<string, SavedState>()
    for (const name of names) {
      const parts = namePattern.exec(name)?.groups
      if (parts?.settings !== settings) continue
      const tokens = before?.get(name)?.tokens ?? (await tokensIn(join(folder, owner, name)))
      const { key = '', exact, bytes } = parts
      if (tokens) states.set(name, { name, key, bytes: Number(bytes), tokens, exact: Number(exact) })
    }
    known.set(place, states)
    return [...states.values()]
  }

  function keyOf({ tokens, exact, adapter }: Pick<Slot, 'tokens' | 'exact' | 'adapter'>): string {
    return `${settingsWith(adapter)}-${exact}-${digest(new Uint8Array(Uint32Array.from(tokens).buffer), 32)}`
  }

  const estimate = (tokens: number): number => Math.ceil(tokens * perToken) + headerBytes

  /** The conversations that are worth saving and are not saved yet, most recently used first. */
  async function unsaved(slots: readonly Slot[]): Promise<Unsaved[]> {
    if (isOff) return []
    const found = []
    for (const slot of slots.toSorted((a, b) => b.usedAt - a.usedAt)) {
      const { owner, tokens, adapter } = slot
      if (slot.held || owner === undefined || tokens.length < minTokens) continue
      const states = await statesOf({ owner, adapter })
      const key = keyOf(slot)
      if (states && !states.some(state => state.key === key)) found.push({ slot, owner, key })
    }
    return found
  }

  /** Writes the state of a slot, if it has at most `maxBytes`. Returns its bytes; 0 if it was not kept. */
  async function write({ slot, owner, key }: Unsaved, maxBytes: number) {
    const part = join(folder, owner, `${key}.${process.pid}.part`)
    try {
      await exclusive(() => context.saveSequenceStateToFile(part, slot.sequence, Uint32Array.from(slot.tokens)))
      const { size } = await stat(part)
      perToken = Math.max(perToken, (size - headerBytes) / slot.tokens.length)
      if (size > maxBytes) throw new Error(`It has ${size} bytes, and ${maxBytes} are left.`)
      await rename(part, join(folder, owner, `${key}-${size}.state`))
      return size
    } catch (thrown) {
      await rm(part, { force: true })
      log.warn('A conversation could not be saved', { tokens: slot.tokens.length }, thrown)
      return 0
    }
  }

  return {
    /** The conversations that `save` would write, most recently used first, and the bytes that they are expected to need. */
    async pending(slots: readonly Slot[]): Promise<{ owner: string; bytes: number }[]> {
      const found = await unsaved(slots)
      return found.map(({ owner, slot }) => ({ owner, bytes: estimate(slot.tokens.length) }))
    },

    /**
     * Saves conversations of slots that no answer has, most recently used first, until each owner's `maxBytes` are
     * written, `maxMs` have passed or `between` refuses. `between` runs work while no batch is computed, or returns undefined.
     */
    async save(
      slots: readonly Slot[],
      { maxBytes, maxMs }: SaveLimits,
      between: (work: () => Promise<number>) => Promise<number | undefined>,
    ): Promise<{ saved: number; bytes: number }> {
      const done = { saved: 0, bytes: 0 }
      const left = new Map(Object.entries(maxBytes))
      const startedAt = performance.now()
      let msPerByte = 0
      for (const one of await unsaved(slots)) {
        const { slot, owner, key } = one
        const wanted = estimate(slot.tokens.length)
        if (performance.now() - startedAt + wanted * msPerByte >= maxMs) break
        const most = left.get(owner) ?? 0
        if (wanted > most) continue
        const began = performance.now()
        const bytes = await between(async () => {
          const isSame = !slot.held && slot.owner === owner && keyOf(slot) === key
          return isSame ? write(one, most) : 0
        })
        if (bytes === undefined) break
        if (bytes === 0) continue
        msPerByte = (performance.now() - began) / bytes
        left.set(owner, most - bytes)
        done.saved++
        done.bytes += bytes
        await removeSuperseded({ owner, adapter: slot.adapter }, slot.tokens)
      }
      return done
    },

    /**
     * Loads the state of this owner and adapter with the longest reusable prefix of the prompt into the slot, if it saves enough
     * compared with `have` reusable tokens. The slot's content is undefined before; after a failed load it is empty.
     * Must not run while a batch is computed.
     */
    async restore(
      slot: Slot,
      owner: string,
      { prompt, piece, reproducible, have, adapter }: RestoreWork,
    ): Promise<boolean> {
      if (isOff) return false
      const wanted = prompt.length - 1
      let best: SavedState | undefined
      let most = have + minGain - 1
      for (const state of (await statesOf({ owner, adapter })) ?? []) {
        if (state.tokens.length > contextSize) continue
        const count = reusableTokens(commonStart(state.tokens, prompt), state.exact, wanted, piece, reproducible)
        if (count > most) [best, most] = [state, count]
      }
      return best ? load(slot, { owner, adapter }, best) : false
    },
  }

  async function removeSuperseded(of: Computed, tokens: readonly number[]): Promise<void> {
    for (const state of (await statesOf(of)) ?? [])
      if (state.tokens.length < tokens.length && commonStart(state.tokens, tokens) === state.tokens.length)
        await rm(join(folder, of.owner, state.name), { force: true })
  }

  async function load(slot: Slot, { owner, adapter }: Computed, state: SavedState): Promise<boolean> {
    const path = join(folder, owner, state.name)
    slot.tokens = []
    slot.exact = 0
    slot.adapter = adapter
    try {
      // llama.cpp ends the process when a file is shorter than it should be.
      const { size } = await stat(path)
      if (size !== state.bytes) throw new Error(`The file has ${size} bytes instead of ${state.bytes}.`)
      const loaded = await exclusive(() => context.loadSequenceStateFromFile(path, slot.sequence, contextSize))
      const isWhole = context.getSequenceKvCacheMaxPosition(slot.sequence) === state.tokens.length - 1
      if (!isWhole) {
        isOff = true
        log.warn('This build of llama.cpp does not restore conversations, so none is saved any more')
      }
      if (!isWhole || commonStart([...loaded], state.tokens) < state.tokens.length)
        throw new Error('The state has other tokens than its file.')
      slot.tokens = [...state.tokens]
      slot.exact = state.exact
      const now = new Date()
      await utimes(path, now, now).catch(() => {})
      return true
    } catch (thrown) {
      context.disposeSequence(slot.sequence)
      await rm(path, { force: true })
      known.get(`${owner} ${settingsWith(adapter)}`)?.delete(state.name)
      log.warn('A saved conversation could not be restored and was deleted', {}, thrown)
      return false
    }
  }
}

/** For whom, and with which adapter, a conversation was computed. */
interface Computed {
  owner: string
  adapter?: string | undefined
}

interface Unsaved {
  slot: Slot
  owner: string
  key: string
}

export type SavedStates = ReturnType<typeof openSavedStates>

export interface SaveLimits {
  /** By owner. */
  maxBytes: Readonly<Record<string, number>>
  maxMs: number
}

interface RestoreWork {
  prompt: readonly number[]
  /** Tokens of a reproducible prompt per step. */
  piece: number
  reproducible: boolean
  /** Tokens of the prompt that can be reused without a saved state. */
  have: number
  /** As in `Slot`. */
  adapter?: string | undefined
}

/** What llama.cpp writes at the start of a sequence's state: `ggsq`, as a number. */
const magic = 0x67_67_73_71

/** Returns the tokens at the start of a state file; undefined if it is none, or was removed. */
async function tokensIn(path: string): Promise<number[] | undefined> {
  try {
    await using file = await open(path)
    const head = Buffer.alloc(12)
    await file.read(head, 0, 12, 0)
    const count = head.readUInt32LE(8)
    if (head.readUInt32LE(0) !== magic || count > maxTokens) return undefined
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4 * count), 0, 4 * count, 12)
    return bytesRead === 4 * count ? Array.from({ length: count }, (_, at) => buffer.readUInt32LE(4 * at)) : undefined
  } catch {
    return undefined
  }
}

/** More than any context has. */
const maxTokens = 1 << 24
