import { z } from 'zod'
import type { SavingEngine } from '../caches/caches.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import { askEngine } from './ask-engine.ts'

const Pending = z.object({ conversations: z.array(z.object({ owner: z.string(), bytes: z.number() })) })
const Saved = z.object({ saved: z.number(), bytes: z.number() })

/** Milliseconds that an engine may take beyond the time in which it is to save. */
const patienceMs = 5_000

/** The routes of a built-in engine by which it saves conversations. Both reject if the engine does not answer. */
export function savingEngineAt(endpoint: Endpoint, headers: readonly string[]): SavingEngine {
  async function ask<Answer>(answer: z.ZodType<Answer>, timeoutMs: number, body?: object): Promise<Answer> {
    const { text } = await askEngine(endpoint, { path: '/conversations', headers, body, timeoutMs })
    return answer.parse(JSON.parse(text))
  }
  return {
    pending: async () => (await ask(Pending, patienceMs)).conversations,
    save: ({ maxBytes, maxMs }) => ask(Saved, maxMs + patienceMs, { max_bytes: maxBytes, max_ms: maxMs }),
  }
}
