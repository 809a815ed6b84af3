import { z } from 'zod'
import { jsonOf } from '../../core/json.ts'
import { engineErrorIn } from '../../core/tasks/protocols/engine-error.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import { askEngine } from './ask-engine.ts'

const Saved = z.object({ n_saved: z.number() })
const Restored = z.object({ n_restored: z.number().min(1) })
const Slots = z.array(
  z.object({ id: z.number(), n_prompt_tokens: z.number().optional(), speculative: z.boolean().optional() }),
)
const Props = z.object({ total_slots: z.number(), build_info: z.string().default('') })
const Computed = z.object({ id_slot: z.number() })

/** More than any of these answers has. */
const maxBytes = 4 << 20
/** A first token may take long where the weights are still read from disk, milliseconds. */
const probeMs = 30_000

/**
 * The routes of llama-server for its slots. All reject if it does not answer or refuses. Source: tried with v0.5.0, and
 * tools/server/server-context.cpp.
 */
export function slotRoutesAt(endpoint: Endpoint, headers: readonly string[]) {
  async function ask<Answer>(
    schema: z.ZodType<Answer>,
    path: string,
    timeoutMs: number,
    body?: object,
  ): Promise<Answer> {
    const { status, text } = await askEngine(endpoint, { path, headers, body, timeoutMs, maxBytes })
    if (status >= 300) throw new Error(engineErrorIn(text).message)
    return schema.parse(jsonOf(text))
  }
  const act = <Answer>(schema: z.ZodType<Answer>, slot: number, action: string, timeoutMs: number, body: object) =>
    ask(schema, `/slots/${slot}?action=${action}`, timeoutMs, body)

  return {
    /** Resolves with the number of tokens that it has written. */
    save: async (slot: number, filename: string, timeoutMs: number): Promise<number> =>
      (await act(Saved, slot, 'save', timeoutMs, { filename })).n_saved,
    restore: async (slot: number, filename: string, timeoutMs: number): Promise<number> =>
      (await act(Restored, slot, 'restore', timeoutMs, { filename })).n_restored,
    /**
     * Gives the slot these adapters, as the member `lora` of a request. Where they change, the next request with them would
     * compute anew what is restored before it.
     */
    async setAdapters(slot: number, adapters: string, timeoutMs: number): Promise<void> {
      const lora = jsonOf(`{${adapters}}`) as object
      const body = { prompt: 'a', n_predict: 0, id_slot: slot, cache_prompt: false, ...lora }
      await ask(Computed, '/completion', timeoutMs, body)
    },
    /** The tokens in each slot, by its number; absent where the build does not say. */
    async tokens(timeoutMs: number): Promise<(number | undefined)[]> {
      const counts: (number | undefined)[] = []
      for (const { id, n_prompt_tokens } of await ask(Slots, '/slots', timeoutMs)) counts[id] = n_prompt_tokens
      return counts
    },
    /**
     * Tries whether requests get the slots that they name, and whether slots can be saved. Resolves with the number of
     * slots and the name of the build; rejects for a build that lacks one of these. `guesses`: it guesses tokens from texts.
     */
    async probe(guesses = false): Promise<{ count: number; build: string }> {
      const { total_slots: count, build_info: build } = await ask(Props, '/props', probeMs)
      // The memory of a draft model is not saved, and would not have what the model has.
      if (!guesses && (await ask(Slots, '/slots', probeMs)).some(({ speculative }) => speculative))
        throw new Error('It guesses tokens with a draft model, whose memory is not saved.')
      // The same one twice: a build that chooses itself takes another the second time.
      const slot = count - 1
      for (let attempt = 0; attempt < 2; attempt++) {
        const body = { prompt: 'a', n_predict: 0, id_slot: slot, cache_prompt: false }
        const computed = await ask(Computed, '/completion', probeMs, body)
        if (computed.id_slot !== slot) throw new Error(`A request for slot ${slot} got slot ${computed.id_slot}.`)
        await act(z.unknown(), slot, 'erase', probeMs, {})
      }
      return { count, build }
    },
  }
}

export type SlotRoutes = ReturnType<typeof slotRoutesAt>
