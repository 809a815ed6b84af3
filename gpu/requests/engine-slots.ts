import type { Log } from '../../core/log.ts'
import type { EngineCall, EngineListener } from '../../core/models/engine-call.ts'
import { movingAverage } from '../../core/moving-average.ts'
import type { SavingEngine } from '../caches/caches.ts'
import { headOf, withMembers } from './body-members.ts'
import { chooseSlot } from './choose-slot.ts'
import { isInPieces } from './exchange.ts'
import type { SlotFile } from './owner-files.ts'
import { commonBytes, lengthOf, type MarkedPrompt, type PromptMarks, promptMarks } from './prompt-marks.ts'
import type { SlotFiles } from './slot-files.ts'
import type { SlotRoutes } from './slot-routes.ts'

/** A shorter conversation is computed again about as fast as it is read. */
const minTokens = 256
/** A saved conversation is restored if it has at least so many bytes more of the prompt than the slot. */
const minGain = 384
/** Beyond the memory of its tokens a file has their numbers and a header. */
const headerBytes = 64 << 10
/** An engine that takes longer for one slot has a fault, milliseconds. */
const patienceMs = 5_000

interface Slot {
  id: number
  /** Whether a lease has it. */
  held: boolean
  /** Counts its requests. */
  requests: number
  usedAt: number
  /** Whose conversation it has; undefined if it must not be saved, or nobody knows what it has. */
  owner: string | undefined
  marks: PromptMarks | undefined
  /** The adapters of its last request, as JSON text. */
  adapters: string
  saved: boolean
  /** Whether a request that names no slot may have changed it during the one that has it. */
  disturbed: boolean
  /** Files that it replaces when it is saved. */
  replaces: string[]
}

export interface EngineSlotsOptions {
  /** How many slots the engine has. */
  count: number
  files: SlotFiles
  routes: SlotRoutes
  /** Key of the hashes of prompts. */
  markKey: string
  /** Names an organization whose conversations may be saved; undefined for others. */
  ownerOf: (organizationId: string) => string | undefined
  /** Estimated bytes of the memory of one token, before a slot was saved. */
  tokenBytes: number
  /** Called when a restored slot turned out to have nothing: this build restores without an effect. */
  useless: () => void
  log: Log
}

/** A request that names its slot. */
export interface PinnedCall {
  call: EngineCall
  listener: EngineListener
}

/**
 * Knows what the slots of one engine have: every request names its slot, so what is saved of a slot is the conversation of
 * the request that had it last, and nothing else. The engine compares tokens: a wrongly chosen slot or file costs time only.
 */
export function openEngineSlots(options: EngineSlotsOptions) {
  const { files, routes, markKey, ownerOf, useless, log } = options
  const slots: Slot[] = Array.from({ length: options.count }, (_, id) => ({
    id,
    held: false,
    requests: 0,
    usedAt: 0,
    owner: undefined,
    marks: undefined,
    adapters: '',
    saved: false,
    disturbed: false,
    replaces: [],
  }))
  let perToken = options.tokenBytes
  let uses = 0
  /** Requests that run and name no slot. */
  let unpinned = 0
  let isOff = false

  function disturb(): void {
    for (const slot of slots) {
      slot.disturbed = true
      slot.owner = undefined
      slot.marks = undefined
    }
  }

  function turnOff(): void {
    isOff = true
    useless()
  }

  async function restore(slot: Slot, owner: string, file: SlotFile): Promise<boolean> {
    try {
      if (slot.adapters !== '') await routes.setAdapters(slot.id, slot.adapters, patienceMs)
    } catch (thrown) {
      log.warn('The adapters for a saved conversation could not be set', {}, thrown)
      return false
    }
    try {
      await files.lend(owner, file, name => routes.restore(slot.id, name, patienceMs))
      return true
    } catch (thrown) {
      const { code, name } = thrown as NodeJS.ErrnoException
      // The engine is busy or ends, or this process has no file handles left: the file is good.
      const isKept = name === 'TimeoutError' || (code !== undefined && code !== 'ENOENT')
      if (!isKept) await files.remove(owner, file.name)
      if (code !== 'ENOENT')
        log.warn(`A saved conversation could not be restored${isKept ? '' : ' and was deleted'}`, {}, thrown)
      return false
    }
  }

  /** Reads from the answer to the first request after a restore whether that had an effect. `proves`: whether it tells of the build. */
  function checking(listener: EngineListener, owner: string, file: SlotFile, proves: () => boolean): EngineListener {
    let cached = 0
    let rest = ''
    return {
      accepted: (...answer) => listener.accepted(...answer),
      failed: failure => listener.failed(failure),
      chunk(bytes) {
        if (cached === 0) {
          const text = rest + bytes.toString('latin1')
          for (const [, count] of text.matchAll(/"(?:cached_tokens|cache_n|cache)":\s*(\d+)[,}\s]/g))
            cached = Math.max(cached, Number(count))
          rest = text.slice(-40)
        }
        listener.chunk(bytes)
      },
      finished() {
        if (cached === 0) {
          void files.remove(owner, file.name).catch(() => {})
          if (proves()) turnOff()
        }
        listener.finished()
      },
    }
  }

  /** The slots whose conversations are worth saving, most recently used first. */
  const unsaved = (): Slot[] =>
    isOff
      ? []
      : slots
          .filter(slot => !slot.held && !slot.saved && slot.owner !== undefined && slot.marks !== undefined)
          .toSorted((a, b) => b.usedAt - a.usedAt)

  const estimate = (tokens: number): number => Math.ceil(tokens * perToken) + headerBytes

  /** Writes one slot. Resolves with its bytes; 0 if it was not kept. */
  async function write(slot: Slot, owner: string, maxBytes: number): Promise<number> {
    const { requests, marks, replaces } = slot
    const name = files.newName()
    try {
      const tokens = await routes.save(slot.id, name, patienceMs)
      // A request that came meanwhile may have been computed before: then it is the conversation of somebody else.
      const isSame = slot.requests === requests && !slot.disturbed && slot.owner === owner
      const kept = await files.keep(name, owner, marks!, isSame && tokens >= minTokens ? maxBytes : -1)
      if (isSame) slot.saved = true
      if (!kept) return 0
      const measured = (kept.bytes - headerBytes) / tokens
      // A short conversation may need more of each token: the estimate grows at once, and shrinks slowly.
      perToken = Math.max(measured, movingAverage(perToken, measured))
      for (const old of replaces) if (old !== kept.name) await files.remove(owner, old)
      slot.replaces = [kept.name]
      return kept.bytes
    } catch (thrown) {
      slot.saved = slot.requests === requests
      await files.keep(name, owner, marks!, -1).catch(() => {})
      log.warn('A conversation could not be saved', { slot: slot.id }, thrown)
      return 0
    }
  }

  const saving: SavingEngine = {
    async pending() {
      await files.read()
      const tokens = unsaved().length > 0 ? await routes.tokens(patienceMs) : []
      return unsaved().flatMap(slot => {
        const count = tokens[slot.id] ?? Math.ceil(slot.marks!.length / 4)
        return count < minTokens ? [] : [{ owner: slot.owner!, bytes: estimate(count) }]
      })
    },
    async save({ maxBytes, maxMs }) {
      const done = { saved: 0, bytes: 0 }
      const left = new Map(Object.entries(maxBytes))
      const startedAt = performance.now()
      const tokens = await routes.tokens(patienceMs)
      let msPerByte = 0
      for (const slot of unsaved()) {
        const { owner } = slot
        // The engine computes or writes: requests do not wait for this.
        if (slots.some(other => other.held) || unpinned > 0) break
        const count = tokens[slot.id] ?? Math.ceil(slot.marks!.length / 4)
        const wanted = estimate(count)
        if (performance.now() - startedAt + wanted * msPerByte >= maxMs) break
        const most = owner === undefined ? 0 : (left.get(owner) ?? 0)
        if (owner === undefined || slot.held || count < minTokens || wanted > most) continue
        const began = performance.now()
        const bytes = await write(slot, owner, most)
        if (bytes === 0) continue
        msPerByte = (performance.now() - began) / bytes
        left.set(owner, most - bytes)
        done.saved++
        done.bytes += bytes
      }
      return done
    },
  }

  /** The slot of one lease: held until it is released. */
  function hold() {
    let slot: Slot | undefined
    let owner: string | undefined
    let isUnpinned = false
    let runs = false
    let restoring: Promise<unknown> | undefined

    function free(): void {
      if (slot) slot.held = false
      slot = undefined
      if (!isUnpinned) return
      isUnpinned = false
      unpinned--
      disturb()
    }

    function take(prompt: MarkedPrompt | undefined): Slot | undefined {
      const chosen = chooseSlot(
        slots.map(one => ({
          slot: one,
          free: !one.held,
          length: one.marks ? lengthOf(one.marks) : 0,
          common: prompt && one.marks ? commonBytes(prompt, one.marks) : 0,
          usedAt: one.usedAt,
        })),
      )?.slot
      if (!chosen) return undefined
      chosen.held = true
      chosen.requests++
      chosen.usedAt = ++uses
      chosen.disturbed = unpinned > 0
      return chosen
    }

    /** Lets the request choose any slot, of which then nobody knows what it has. */
    function unpin(): void {
      if (!isUnpinned) unpinned++
      isUnpinned = true
      disturb()
    }

    return {
      /**
       * Returns the request with its slot; a promise of it where a saved conversation is restored before. A few comparisons
       * otherwise, and the hash of the prompt.
       */
      pin(
        call: EngineCall,
        listener: EngineListener,
        organizationId: string | undefined,
      ): PinnedCall | Promise<PinnedCall> {
        const { method = 'POST', body } = call
        if (method !== 'POST' || isOff) return { call, listener }
        const isObject =
          typeof body === 'string' ? body.startsWith('{') : body instanceof Uint8Array && body[0] === 0x7b
        if (!isObject || runs || (call.several ?? asksSeveral(body as string | Uint8Array))) {
          unpin()
          return { call, listener }
        }
        free()
        const sent = body as string | Uint8Array
        const head = headOf(sent)
        const adapters = /^\{("lora":\[[^\]]*\])/.exec(head)?.[1] ?? ''
        const isStorable = organizationId !== undefined && !(call.unstored ?? isUnstored(sent))
        const wanted = isStorable ? ownerOf(organizationId) : undefined
        const ownLengths = wanted === undefined ? [] : files.lengths(wanted)
        const lengths = slots.flatMap(({ marks }) => marks?.length ?? [])
        // What one adapter has computed is nothing to another: its marks have other hashes.
        const prompt = promptMarks(sent, markKey + adapters, [...lengths, ...ownLengths])
        slot = take(prompt)
        if (!slot) {
          unpin()
          return { call, listener }
        }
        runs = true
        const mine = slot
        owner = prompt ? wanted : undefined
        const common = prompt && mine.marks ? commonBytes(prompt, mine.marks) : 0
        const best = owner === undefined ? undefined : files.longest(owner, prompt!)
        const gains = best && best.common >= common + minGain ? best : undefined
        mine.replaces = owner === undefined ? [] : files.within(owner, prompt!)
        const pinned = withSlot(call, sent, `"id_slot":${mine.id}`)
        // The engine would reuse what it has computed with other adapters.
        const isOther = mine.adapters !== adapters
        const anew = isOther ? withSlot(call, sent, `"id_slot":${mine.id},"cache_prompt":false`) : pinned
        Object.assign(mine, { owner: undefined, marks: prompt && marksOf(prompt), adapters, saved: false })
        if (!gains) return { call: anew, listener }
        const restored = restore(mine, owner!, gains.file)
        restoring = restored
        const isWhole = gains.common === gains.file.marks.length
        return restored.then(isRestored => ({
          call: isRestored ? pinned : anew,
          // A request that named no slot may have changed it meanwhile.
          listener: isRestored ? checking(listener, owner!, gains.file, () => isWhole && !mine.disturbed) : listener,
        }))
      },
      /** The request has ended. `began`: the engine has sent a part of its result, so its slot has this prompt. */
      ended(began: boolean): void {
        if (!runs) return
        runs = false
        if (slot && began && !slot.disturbed) slot.owner = owner
        else if (slot) slot.marks = undefined
      },
      /** The engine works on it no more. */
      release(): void {
        if (restoring) void restoring.then(free, free)
        else free()
      },
    }
  }

  return { hold, saving }
}

export type EngineSlots = ReturnType<typeof openEngineSlots>
export type SlotHold = ReturnType<EngineSlots['hold']>

const marksOf = ({ length, end, powers }: MarkedPrompt): PromptMarks => ({ length, end, powers })

/** Adds members to a request. Those of a large body are sent before it. */
function withSlot(call: EngineCall, body: string | Uint8Array, members: string): EngineCall {
  if (typeof body === 'string' || !isInPieces(body)) return { ...call, body: withMembers(body, members) }
  return { ...call, members: call.members === undefined ? members : `${members},${call.members}` }
}

/** Whether the request says that nothing of it may be stored. In a text of a body the quotes would be escaped. */
function isUnstored(body: string | Uint8Array): boolean {
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return text.includes('"store":false')
}

/**
 * Whether the request wants several answers: the engine computes the others in slots of its choice. In a text of a body the
 * quotes would be escaped.
 */
function asksSeveral(body: string | Uint8Array): boolean {
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return ['"n":', '"n_cmpl":'].some(name => {
    for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
      const value = text.slice(at + name.length, at + name.length + 3).toString()
      if (/^ ?([2-9]|1\d)/.test(value)) return true
    }
    return false
  })
}
